import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { sql } from 'kysely';
import type { RegistryHead, RegistryStore, RegistryWrite, WriteOutcome } from '../registry-store.js';
import {
  appendEvents,
  lockAgents,
  lockHead,
  putAgents,
  readAgents,
  readAgentsAfter,
  readClock,
  readHead,
  removeAgents,
  updateHead,
} from './registry-rows.js';
import type { StoreDatabase } from './store-database.js';
import { isStorable } from './storable.js';
import { planWrites } from './write-plan.js';

/** Agents in one statement of a snapshot: each has its own deadline. */
const SNAPSHOT_PAGE = 5_000;
/** Events that one transaction of a prune drops: it holds the lock that writers wait for. */
const PRUNE_STEP = 10_000;

/** The registry on Postgres. Every method uses one connection, and every write the head row's lock first. */
export class PostgresRegistryStore implements RegistryStore {
  readonly #database: StoreDatabase;

  constructor(database: StoreDatabase) {
    this.#database = database;
  }

  async write(
    writes: readonly RegistryWrite[],
    options: { readonly nodeId: string; readonly maxAgents: number },
  ): Promise<WriteOutcome[]> {
    if (writes.length === 0) return [];
    const ids = [...new Set(writes.map(agentIdOf))].filter(isStorable);
    return await this.#database.write(async (transaction) => {
      const head = await lockHead(transaction);
      const nowMs = await readClock(transaction);
      const known = await lockAgents(transaction, ids);
      const plan = planWrites(writes, {
        ...options,
        head,
        nowMs,
        agents: new Map(known.map((agent) => [agent.record.agentId, agent])),
      });
      if (plan.events.length > 0) {
        await putAgents(transaction, plan.put);
        await removeAgents(transaction, plan.remove);
        await appendEvents(transaction, plan.events);
        await updateHead(transaction, plan.head);
      }
      return [...plan.outcomes];
    });
  }

  async head(): Promise<RegistryHead> {
    return await this.#database.read(readHead);
  }

  async get(agentId: string): Promise<RegisteredAgent | null> {
    const [agent] = await this.#database.read((connection) => readAgents(connection, [agentId]));
    return agent ?? null;
  }

  async eventsAfter(revision: number, limit: number): Promise<RegistryEvent[] | null> {
    // One statement, so that a prune cannot come between the question and the events.
    const { rows } = await this.#database.read((connection) =>
      sql<{ head: number; pruned_to: number; event: RegistryEvent | null }>`
        select h.revision as head, h.pruned_to, e.event
        from registry_head h
        left join lateral (
          select revision, event from registry_events where revision > ${revision} order by revision limit ${limit}
        ) e on true
        order by e.revision`.execute(connection),
    );
    const [first] = rows;
    if (first === undefined || revision < first.pruned_to) return null;
    // Ahead of the head: the database was restored from an older copy, and only a snapshot sets that right.
    if (revision > first.head) return null;
    return rows.flatMap((row) => row.event ?? []);
  }

  async snapshot(): Promise<{ readonly head: RegistryHead; readonly agents: RegisteredAgent[] }> {
    return await this.#database.readConsistently(async (transaction) => {
      const head = await readHead(transaction);
      const agents: RegisteredAgent[] = [];
      for (;;) {
        const page = await readAgentsAfter(transaction, agents.at(-1)?.ordinal ?? 0, SNAPSHOT_PAGE);
        for (const agent of page) agents.push(agent);
        if (page.length < SNAPSHOT_PAGE) return { head, agents };
      }
    });
  }

  async prune(keepRevisions: number): Promise<void> {
    let isDone = false;
    while (!isDone) isDone = await this.#pruneStep(keepRevisions);
  }

  /** @returns whether nothing older than `keepRevisions` is left */
  async #pruneStep(keepRevisions: number): Promise<boolean> {
    return await this.#database.write(async (transaction) => {
      const head = await lockHead(transaction);
      const target = head.revision - keepRevisions;
      if (target <= head.prunedTo) return true;
      const prunedTo = Math.min(target, head.prunedTo + PRUNE_STEP);
      await sql`delete from registry_events where revision <= ${prunedTo}`.execute(transaction);
      await updateHead(transaction, { ...head, prunedTo });
      return prunedTo === target;
    });
  }
}

function agentIdOf(write: RegistryWrite): string {
  return write.kind === 'register' ? write.record.agentId : write.agentId;
}
