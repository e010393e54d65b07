import type { AgentRecord, RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';

/** One write that a client asked for. */
export type RegistryWrite =
  | {
      readonly kind: 'register';
      readonly record: AgentRecord;
      /** The card as received, byte for byte. */
      readonly cardRaw: Uint8Array;
      readonly traceparent?: string;
    }
  | { readonly kind: 'deregister'; readonly agentId: string; readonly traceparent?: string };

/** What became of one write; each row of a batch has its own. */
export type WriteOutcome =
  | { readonly kind: 'written'; readonly event: RegistryEvent }
  | {
      readonly kind: 'refused';
      /** `invalid_argument`: the record holds U+0000 or a lone surrogate, which Postgres cannot store. */
      readonly code: 'agent_not_found' | 'agent_limit_reached' | 'permission_denied' | 'invalid_argument';
    };

/** Where the registry stands. */
export interface RegistryHead {
  readonly revision: number;
  readonly agentCount: number;
  /** Events up to and including this revision are gone. */
  readonly prunedTo: number;
}

/** The registry's truth. Every method throws PatchbayError `store_unavailable` when the database cannot be asked. */
export interface RegistryStore {
  /**
   * Commits a group of writes in one transaction, in order; one bad row fails alone. An id may come several times.
   * When the outcome of the COMMIT is unknown, throws `store_unavailable`; the caller looks at the head.
   * @param maxAgents Most records, 0 = unlimited.
   */
  write(
    writes: readonly RegistryWrite[],
    options: { readonly nodeId: string; readonly maxAgents: number },
  ): Promise<WriteOutcome[]>;
  head(): Promise<RegistryHead>;
  get(agentId: string): Promise<RegisteredAgent | null>;
  /** The next events after `revision`, at most `limit`; null when they are pruned. */
  eventsAfter(revision: number, limit: number): Promise<RegistryEvent[] | null>;
  /** All agents in order of ordinal together with the head, read at one point in time. */
  snapshot(): Promise<{ readonly head: RegistryHead; readonly agents: RegisteredAgent[] }>;
  /** Drops events older than `keepRevisions` behind the head. */
  prune(keepRevisions: number): Promise<void>;
}
