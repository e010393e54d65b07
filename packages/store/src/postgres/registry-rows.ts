import type { AgentRecord, RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { sql } from 'kysely';
import type { Transaction } from 'kysely';
import type { RegistryHead } from '../registry-store.js';
import type { StoreSchema } from './schema.js';
import type { StoreConnection } from './store-database.js';

/** A row of `agents` beside its sign of life. */
interface AgentRow {
  readonly record: AgentRecord;
  readonly ordinal: number;
  readonly revision: number;
  readonly registered_at: Date;
  readonly last_seen: Date;
}

type Tx = Transaction<StoreSchema>;

/** Rows in one INSERT; bounds the size of a message to the database. */
const EVENTS_PER_INSERT = 5_000;

/**
 * Takes the lock that puts all writes in one order, and says where the head is. First statement of every transaction
 * that changes the registry: under READ COMMITTED what is read after it is what the writer before has committed.
 */
export async function lockHead(transaction: Tx): Promise<RegistryHead> {
  const { rows } = await sql<{ revision: number; agent_count: number; pruned_to: number }>`
    select revision, agent_count, pruned_to from registry_head for update`.execute(transaction);
  return headOf(rows[0]);
}

/** Where the registry stands, without a lock. */
export async function readHead(connection: StoreConnection): Promise<RegistryHead> {
  const { rows } = await sql<{ revision: number; agent_count: number; pruned_to: number }>`
    select revision, agent_count, pruned_to from registry_head`.execute(connection);
  return headOf(rows[0]);
}

function headOf(row: { revision: number; agent_count: number; pruned_to: number } | undefined): RegistryHead {
  if (row === undefined) throw new Error('registry_head is empty; restore the database or migrate a new one');
  return { revision: row.revision, agentCount: row.agent_count, prunedTo: row.pruned_to };
}

export async function updateHead(transaction: Tx, head: RegistryHead): Promise<void> {
  await sql`
    update registry_head
    set revision = ${head.revision}, agent_count = ${head.agentCount}, pruned_to = ${head.prunedTo}`.execute(
    transaction,
  );
}

/** The database's clock in whole milliseconds since 1970. */
export async function readClock(connection: StoreConnection): Promise<number> {
  const { rows } = await sql<{ now_ms: number }>`
    select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms`.execute(connection);
  return rows[0]?.now_ms ?? 0;
}

/** The agents with these ids. */
export async function readAgents(connection: StoreConnection, agentIds: readonly string[]): Promise<RegisteredAgent[]> {
  const { rows } = await sql<AgentRow>`
    select a.record, a.ordinal, a.revision, a.registered_at, l.last_seen
    from agents a join agent_liveness l using (agent_id)
    where a.agent_id = any(${agentIds}::text[])`.execute(connection);
  return rows.map(agentOf);
}

/**
 * Locks and reads the agents with these ids. All signs of life that a transaction touches are locked in one go in the
 * order of ids, as batches of beats do; taken bit by bit they would deadlock with those.
 */
export async function lockAgents(transaction: Tx, agentIds: readonly string[]): Promise<RegisteredAgent[]> {
  const { rows } = await sql<AgentRow>`
    select a.record, a.ordinal, a.revision, a.registered_at, l.last_seen
    from agents a join agent_liveness l using (agent_id)
    where a.agent_id = any(${agentIds}::text[])
    order by agent_id
    for update of l`.execute(transaction);
  return rows.map(agentOf);
}

/** At most `limit` agents after `ordinal`, in the order of ordinals. */
export async function readAgentsAfter(
  connection: StoreConnection,
  ordinal: number,
  limit: number,
): Promise<RegisteredAgent[]> {
  const { rows } = await sql<AgentRow>`
    select a.record, a.ordinal, a.revision, a.registered_at, l.last_seen
    from agents a join agent_liveness l using (agent_id)
    where a.ordinal > ${ordinal}
    order by a.ordinal
    limit ${limit}`.execute(connection);
  return rows.map(agentOf);
}

function agentOf(row: AgentRow): RegisteredAgent {
  return {
    record: row.record,
    ordinal: row.ordinal,
    revision: row.revision,
    registeredAtMs: row.registered_at.getTime(),
    lastSeenMs: row.last_seen.getTime(),
  };
}

/** Inserts or replaces agents with their signs of life. No id may come twice. */
export async function putAgents(
  transaction: Tx,
  rows: readonly { readonly agent: RegisteredAgent; readonly cardRaw: Uint8Array }[],
): Promise<void> {
  if (rows.length === 0) return;
  const agents = rows.map((row) => row.agent);
  const ids = agents.map((agent) => agent.record.agentId);
  await sql`
    insert into agents (agent_id, dialect, owner, card_raw, record, ordinal, revision, registered_at)
    select r.agent_id, r.dialect, r.owner, r.card_raw, r.record::jsonb, r.ordinal, r.revision,
           to_timestamp(r.registered_at_ms / 1000)
    from unnest(
      ${ids}::text[],
      ${agents.map((agent) => agent.record.dialect)}::text[],
      ${agents.map((agent) => agent.record.owner ?? null)}::text[],
      ${rows.map((row) => Buffer.from(row.cardRaw.buffer, row.cardRaw.byteOffset, row.cardRaw.byteLength))}::bytea[],
      ${agents.map((agent) => JSON.stringify(agent.record))}::text[],
      ${agents.map((agent) => agent.ordinal)}::bigint[],
      ${agents.map((agent) => agent.revision)}::bigint[],
      ${agents.map((agent) => agent.registeredAtMs)}::float8[]
    ) as r (agent_id, dialect, owner, card_raw, record, ordinal, revision, registered_at_ms)
    on conflict (agent_id) do update set
      dialect = excluded.dialect, owner = excluded.owner, card_raw = excluded.card_raw, record = excluded.record,
      ordinal = excluded.ordinal, revision = excluded.revision, registered_at = excluded.registered_at`.execute(
    transaction,
  );
  await sql`
    insert into agent_liveness (agent_id, last_seen)
    select r.agent_id, to_timestamp(r.last_seen_ms / 1000)
    from unnest(${ids}::text[], ${agents.map((agent) => agent.lastSeenMs)}::float8[]) as r (agent_id, last_seen_ms)
    on conflict (agent_id) do update set
      last_seen = greatest(agent_liveness.last_seen, excluded.last_seen)`.execute(transaction);
}

/** Removes agents with their signs of life, which the transaction has locked. */
export async function removeAgents(transaction: Tx, agentIds: readonly string[]): Promise<void> {
  if (agentIds.length === 0) return;
  await sql`delete from agents where agent_id = any(${agentIds}::text[])`.execute(transaction);
  await sql`delete from agent_liveness where agent_id = any(${agentIds}::text[])`.execute(transaction);
}

export async function appendEvents(transaction: Tx, events: readonly RegistryEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += EVENTS_PER_INSERT) {
    const some = events.slice(from, from + EVENTS_PER_INSERT);
    await sql`
      insert into registry_events (revision, kind, agent_id, reason, node_id, at, event)
      select e.revision, e.kind, e.agent_id, e.reason, e.node_id, to_timestamp(e.at_ms / 1000), e.event::jsonb
      from unnest(
        ${some.map((event) => event.revision)}::bigint[],
        ${some.map((event) => event.kind)}::text[],
        ${some.map((event) => event.agentId)}::text[],
        ${some.map((event) => event.reason ?? null)}::text[],
        ${some.map((event) => event.nodeId)}::text[],
        ${some.map((event) => event.atMs)}::float8[],
        ${some.map((event) => JSON.stringify(event))}::text[]
      ) as e (revision, kind, agent_id, reason, node_id, at_ms, event)`.execute(transaction);
  }
}
