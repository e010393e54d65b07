import type { AgentRecord, Dialect, RegistryEvent, RegistryEventKind } from '@patchbay/agent-card';
import type { ColumnType } from 'kysely';

/** JSON on the way in is text, so that what is written is exactly what was checked. */
type Json<T> = ColumnType<T, string, string>;

/** The tables, as kysely sees them. `bigint` columns arrive as numbers (see `StoreDatabase`). */
export interface StoreSchema {
  agents: {
    agent_id: string;
    dialect: Dialect;
    owner: string | null;
    /** The card as received, byte for byte. */
    card_raw: Buffer;
    record: Json<AgentRecord>;
    ordinal: number;
    revision: number;
    registered_at: Date;
  };
  agent_liveness: { agent_id: string; last_seen: Date };
  /** One row: the lock that puts all writes in one order. */
  registry_head: { one: boolean; revision: number; agent_count: number; pruned_to: number };
  registry_events: {
    revision: number;
    kind: RegistryEventKind;
    agent_id: string;
    reason: string | null;
    node_id: string;
    at: Date;
    event: Json<RegistryEvent>;
  };
  /** One row: when a sweep last ran to its end, and until when nobody expires. */
  liveness_sweep: { one: boolean; completed_at: Date | null; grace_until: Date | null };
}
