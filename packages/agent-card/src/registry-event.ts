import type { RegisteredAgent } from './agent-record.js';

/** What happened to an agent. An expiry is a deregistration with its reason. */
export type RegistryEventKind = 'registered' | 'updated' | 'deregistered';

/** One change of the registry. Revisions are gapless and in the order of commits. Plain JSON. */
export interface RegistryEvent {
  readonly v: 1;
  readonly revision: number;
  readonly kind: RegistryEventKind;
  readonly agentId: string;
  /** The agent after the change; null when it is gone. */
  readonly agent: RegisteredAgent | null;
  /** When it was committed, milliseconds since 1970 on the database's clock. */
  readonly atMs: number;
  /** The node that wrote it. */
  readonly nodeId: string;
  readonly reason?: 'expired';
  readonly traceparent?: string;
}
