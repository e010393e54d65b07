import type { RegistryEvent } from '@patchbay/agent-card';
import { sql } from 'kysely';
import type { Transaction } from 'kysely';
import type { Beat, LivenessStore, SweepOptions, SweepOutcome } from '../liveness-store.js';
import { appendEvents, lockHead, readClock, removeAgents, updateHead } from './registry-rows.js';
import type { StoreSchema } from './schema.js';
import type { StoreDatabase } from './store-database.js';

/** Names the advisory lock of sweeps; any number that nobody else uses. */
const SWEEP_LOCK = 7_291_640_318;
/** Beats in one transaction: its row locks are held until it commits. */
const BEATS_PER_TRANSACTION = 10_000;
/** A sweep is overdue, and beats may have gone unheard, after so many intervals. */
const OVERDUE_INTERVALS = 2;

/** Signs of life on Postgres. */
export class PostgresLivenessStore implements LivenessStore {
  readonly #database: StoreDatabase;

  constructor(database: StoreDatabase) {
    this.#database = database;
  }

  async recordBeats(beats: readonly Beat[]): Promise<number> {
    const newest = newestById(beats);
    if (newest.length === 0) return await this.databaseTimeMs();
    let nowMs = 0;
    for (let from = 0; from < newest.length; from += BEATS_PER_TRANSACTION) {
      nowMs = await this.#recordSome(newest.slice(from, from + BEATS_PER_TRANSACTION));
    }
    return nowMs;
  }

  async #recordSome(beats: readonly Beat[]): Promise<number> {
    const ids = beats.map((beat) => beat.agentId);
    return await this.#database.write(async (transaction) => {
      await lockInOrder(transaction, ids);
      await sql`
        update agent_liveness l
        set last_seen = to_timestamp(b.last_seen_ms / 1000)
        from unnest(${ids}::text[], ${beats.map((beat) => beat.lastSeenMs)}::float8[]) as b (agent_id, last_seen_ms)
        where l.agent_id = b.agent_id and l.last_seen < to_timestamp(b.last_seen_ms / 1000)`.execute(transaction);
      return await readClock(transaction);
    });
  }

  async databaseTimeMs(): Promise<number> {
    return await this.#database.read(readClock);
  }

  async sweep(options: SweepOptions): Promise<SweepOutcome> {
    return await this.#database.write(async (transaction) => {
      const { rows } = await sql<{ locked: boolean }>`
        select pg_try_advisory_xact_lock(${SWEEP_LOCK}) as locked`.execute(transaction);
      if (rows[0]?.locked !== true) return { kind: 'busy' };
      const nowMs = await readClock(transaction);
      const state = await readSweepState(transaction);
      const graceUntilMs = graceAfter(state, nowMs, options);
      await writeSweepState(transaction, nowMs, graceUntilMs);
      if (graceUntilMs !== null) return { kind: 'grace', untilMs: graceUntilMs };
      const cutoffMs = nowMs - options.ttlMs - (options.deafMs ?? 0);
      const isFirst = state.completedAtMs === null;
      return { kind: 'swept', expired: isFirst ? [] : await expire(transaction, cutoffMs, options.nodeId, nowMs) };
    });
  }
}

interface SweepState {
  /** Null before the first sweep of this database. */
  readonly completedAtMs: number | null;
  readonly graceUntilMs: number | null;
}

/**
 * Until when nobody expires; null when agents may. Beats count from when we can hear again, so an overdue sweep
 * starts a grace of one TTL, and a grace under way goes on.
 */
function graceAfter(state: SweepState, nowMs: number, options: SweepOptions): number | null {
  if (state.completedAtMs === null) return null;
  if (nowMs - state.completedAtMs > OVERDUE_INTERVALS * options.intervalMs) return nowMs + options.ttlMs;
  return state.graceUntilMs !== null && state.graceUntilMs > nowMs ? state.graceUntilMs : null;
}

async function readSweepState(transaction: Transaction<StoreSchema>): Promise<SweepState> {
  const { rows } = await sql<{ completed_at: Date | null; grace_until: Date | null }>`
    select completed_at, grace_until from liveness_sweep`.execute(transaction);
  return {
    completedAtMs: rows[0]?.completed_at?.getTime() ?? null,
    graceUntilMs: rows[0]?.grace_until?.getTime() ?? null,
  };
}

/** A sweep in grace is complete too: it heard, and had nobody to remove. */
async function writeSweepState(
  transaction: Transaction<StoreSchema>,
  completedAtMs: number,
  graceUntilMs: number | null,
): Promise<void> {
  await sql`
    update liveness_sweep
    set completed_at = to_timestamp(${completedAtMs}::float8 / 1000),
        grace_until = to_timestamp(${graceUntilMs}::float8 / 1000)`.execute(transaction);
}

/**
 * Removes who was silent since `cutoffMs`. The rows are locked before they are judged: a beat that is being written
 * is waited for, and its row judged again (READ COMMITTED re-reads it), so no agent that was heard is removed.
 */
async function expire(
  transaction: Transaction<StoreSchema>,
  cutoffMs: number,
  nodeId: string,
  nowMs: number,
): Promise<RegistryEvent[]> {
  const head = await lockHead(transaction);
  const { rows } = await sql<{ agent_id: string }>`
    select agent_id from agent_liveness
    where last_seen < to_timestamp(${cutoffMs}::float8 / 1000)
    order by agent_id
    for update`.execute(transaction);
  const events = rows.map(({ agent_id: agentId }, index): RegistryEvent => ({
    v: 1,
    revision: head.revision + index + 1,
    kind: 'deregistered',
    agentId,
    agent: null,
    atMs: nowMs,
    nodeId,
    reason: 'expired',
  }));
  if (events.length === 0) return [];
  await removeAgents(
    transaction,
    events.map((event) => event.agentId),
  );
  await appendEvents(transaction, events);
  await updateHead(transaction, {
    ...head,
    revision: head.revision + events.length,
    agentCount: head.agentCount - events.length,
  });
  return events;
}

/** Locks rows in the order of their ids; without it two batches of the same ids deadlock. */
async function lockInOrder(transaction: Transaction<StoreSchema>, agentIds: readonly string[]): Promise<void> {
  await sql`
    select count(*) from (
      select 1 from agent_liveness where agent_id = any(${agentIds}::text[]) order by agent_id for update
    ) as locked`.execute(transaction);
}

/** One beat for each agent, its newest. */
function newestById(beats: readonly Beat[]): Beat[] {
  const newest = new Map<string, Beat>();
  for (const beat of beats) {
    const known = newest.get(beat.agentId);
    if (known === undefined || beat.lastSeenMs > known.lastSeenMs) newest.set(beat.agentId, beat);
  }
  return [...newest.values()];
}
