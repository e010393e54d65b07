import { EventEmitter, once } from 'node:events';
import { migrate, openStore } from '@patchbay/store';
import type { OpenedStore } from '@patchbay/store';
import { eventually, startPostgres } from '@patchbay/testkit';
import type { PostgresServer } from '@patchbay/testkit';
import { sql } from 'kysely';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreDatabase } from '../dist/postgres/store-database.js';
import { RecordedLog } from './recorded-log.js';
import { codesOf, deregister, describeStore, history, register } from './store-contract.js';

const OPTIONS = { nodeId: 'node-a', maxAgents: 0 };
const logger = new RecordedLog();

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 300_000);
afterAll(async () => {
  await server.stop();
});

async function open(
  url: string,
  more: { maxConnections?: number; statementTimeoutMs?: number } = {},
): Promise<OpenedStore> {
  return await openStore({ kind: 'postgres', url, logger, ...more });
}

/** A connection beside the store's. */
async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {}); // a server that is killed under it
  await client.connect();
  return client;
}

describeStore('a real Postgres', async () => await open(await server.createDatabase()));

describe('migrations', () => {
  test('three nodes that start together: one runs them, the others find them done', async () => {
    for (let round = 0; round < 5; round += 1) {
      const url = await server.createDatabase();
      const ran = await Promise.all([1, 2, 3].map(() => migrate({ kind: 'postgres', url, logger })));
      expect(ran.flat()).toEqual(['0001-registry']);
      expect(await migrate({ kind: 'postgres', url, logger })).toEqual([]);
    }
  });

  test('of a newer version are refused with its name', async () => {
    const url = await server.createDatabase();
    await migrate({ kind: 'postgres', url, logger });
    const client = await connect(url);
    await client.query(`insert into patchbay_migrations (name) values ('0099-future')`);
    await client.end();
    await expect(open(url)).rejects.toMatchObject({
      code: 'unsupported_operation',
      message: expect.stringContaining('0099-future') as string,
    });
  });
});

describe('several nodes on one database', () => {
  test('write gapless revisions and never deadlock, beats and sweeps included', async () => {
    const url = await server.createDatabase();
    const stores = await Promise.all([1, 2, 3].map(() => open(url)));
    const [first] = stores as [OpenedStore, ...OpenedStore[]];
    const ids = Array.from({ length: 300 }, (_, index) => `agent-${index}`);
    await first.registry.write(
      ids.map((id) => register(id)),
      OPTIONS,
    );
    await Promise.all(
      stores.map(async (store, node) => {
        for (let round = 0; round < 25; round += 1) {
          const shuffled = ids.toSorted((a, b) => hash(a, node + round) - hash(b, node + round));
          const lastSeenMs = await store.liveness.databaseTimeMs();
          await Promise.all([
            store.liveness.recordBeats(shuffled.map((agentId) => ({ agentId, lastSeenMs }))),
            store.registry.write(
              shuffled.slice(0, 40).map((id, index) => (index % 4 === 3 ? deregister(id) : register(id))),
              OPTIONS,
            ),
            store.liveness.sweep({ nodeId: `node-${node}`, ttlMs: 200, intervalMs: 600_000 }),
          ]);
        }
      }),
    );
    const events = await history(first);
    const head = await first.registry.head();
    expect(head.revision).toBe(events.length);
    expect(head.agentCount).toBe((await first.registry.snapshot()).agents.length);
    await Promise.all(stores.map((store) => store.close()));
  });

  test('every method gets by with one connection', async () => {
    const store = await open(await server.createDatabase(), { maxConnections: 1 });
    await Promise.all([
      store.registry.write([register('agent-1')], OPTIONS),
      store.registry.head(),
      store.registry.get('agent-1'),
      store.registry.eventsAfter(0, 10),
      store.registry.snapshot(),
      store.registry.prune(0),
      store.liveness.recordBeats([{ agentId: 'agent-1', lastSeenMs: 1 }]),
      store.liveness.databaseTimeMs(),
      store.liveness.sweep({ nodeId: 'node-a', ttlMs: 1, intervalMs: 1 }),
    ]);
    await store.close();
  });
});

describe('a sweep that meets a beat', () => {
  test('waits for it and leaves the agent', async () => {
    const url = await server.createDatabase();
    const store = await open(url);
    const sweep = { nodeId: 'node-a', ttlMs: 1, intervalMs: 600_000 };
    await store.registry.write([register('heard'), register('silent')], OPTIONS);
    await store.liveness.sweep(sweep);
    const beat = await connect(url);
    await beat.query('begin');
    await beat.query(`update agent_liveness set last_seen = now() + interval '1 hour' where agent_id = 'heard'`);
    const sweeping = store.liveness.sweep(sweep);
    const watcher = await connect(url);
    await eventually(async () => {
      const { rowCount } = await watcher.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    });
    expect(await store.liveness.sweep(sweep)).toEqual({ kind: 'busy' });
    await beat.query('commit');
    expect(await sweeping).toMatchObject({ kind: 'swept', expired: [{ agentId: 'silent' }] });
    expect(await store.registry.get('heard')).not.toBeNull();
    await Promise.all([beat.end(), watcher.end(), store.close()]);
  });
});

describe('when Postgres goes away', () => {
  test('a restart under load: no write is half-done, and the pool recovers', async () => {
    const url = await server.createDatabase();
    const store = await open(url);
    const written: string[] = [];
    const failures: unknown[] = [];
    const writing = new AbortController();
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let round = 0; !writing.signal.aborted; round += 1) {
        const ids = [`agent-${writer}-${round}-a`, `agent-${writer}-${round}-b`];
        try {
          await store.registry.write(
            ids.map((id) => register(id)),
            OPTIONS,
          );
          written.push(...ids);
        } catch (error) {
          failures.push(error);
          await new Promise((resolve) => {
            setTimeout(resolve, 10);
          });
        }
      }
    });
    await eventually(() => written.length > 40);
    await server.restart();
    const before = written.length;
    await eventually(() => written.length > before + 40, { withinMs: 15_000 });
    writing.abort();
    await Promise.all(writers);
    expect(failures.length).toBeGreaterThan(0);
    for (const failure of failures) expect(failure).toMatchObject({ code: 'store_unavailable', retryable: true });
    const present = new Set((await store.registry.snapshot()).agents.map((agent) => agent.record.agentId));
    expect(written.filter((id) => !present.has(id))).toEqual([]);
    for (const id of present)
      expect(present.has(id.endsWith('a') ? `${id.slice(0, -1)}b` : `${id.slice(0, -1)}a`)).toBe(true);
    expect((await store.registry.head()).agentCount).toBe(present.size);
    await history(store);
    expect(store.isUp).toBe(true);
    await store.close();
  });

  test('a server that stands still is given up at the deadline, and used again when it goes on', async () => {
    const store = await open(await server.createDatabase(), { statementTimeoutMs: 500 });
    const changes: boolean[] = [];
    const stop = store.onStatus((isUp) => changes.push(isUp));
    server.pause();
    try {
      const startedAtMs = performance.now();
      const failure = { code: 'store_unavailable', message: expect.stringContaining('500 ms') as string };
      await expect(store.registry.write([register('agent-1')], OPTIONS)).rejects.toMatchObject(failure);
      expect(performance.now() - startedAtMs).toBeLessThan(3_000);
      expect(store.isUp).toBe(false);
    } finally {
      server.resume();
    }
    // By itself: nobody asks but the probe.
    await eventually(() => store.isUp, { withinMs: 10_000 });
    stop();
    expect(changes).toEqual([false, true]);
    expect(codesOf(await store.registry.write([register('agent-1')], OPTIONS))).toEqual(['registered']);
    await store.close();
  });

  test('a COMMIT without an answer is an unknown outcome', async () => {
    const url = await server.createDatabase();
    const store = await open(url, { statementTimeoutMs: 500 });
    const client = await connect(url);
    // COMMIT itself waits here, in a deferred trigger.
    await client.query(`
      create function wait_at_commit() returns trigger language plpgsql as
        $$ begin perform pg_sleep(1.5); return null; end $$;
      create constraint trigger slow_commit after insert on registry_events
        deferrable initially deferred for each row execute function wait_at_commit()`);
    await expect(store.registry.write([register('agent-1')], OPTIONS)).rejects.toMatchObject({
      code: 'store_unavailable',
      details: { outcome: 'unknown' },
    });
    expect(await store.registry.head()).toMatchObject({ revision: 0 });
    // This one did commit, after all.
    await eventually(async () => (await store.registry.head()).revision === 1);
    expect(await store.registry.get('agent-1')).not.toBeNull();
    await client.end();
    await store.close();
  });

  test('a node that stands still inside a write holds the others up for a bounded time', async () => {
    const url = await server.createDatabase();
    const store = await open(url);
    const stopped = new StoreDatabase({
      pool: { connectionString: url, max: 1 },
      logger,
      statementTimeoutMs: 1_000,
      hasServerTimeouts: true,
    });
    const progress = new EventEmitter();
    const locked = once(progress, 'locked');
    const standing = stopped.write(async (transaction) => {
      await sql`select 1 from registry_head for update`.execute(transaction);
      const released = once(progress, 'released');
      progress.emit('locked');
      await released;
    });
    await locked;
    expect(codesOf(await store.registry.write([register('agent-1')], OPTIONS))).toEqual(['registered']);
    progress.emit('released');
    await expect(standing).rejects.toMatchObject({ code: 'store_unavailable' });
    await Promise.all([store.close(), stopped.close()]);
  });

  test('a pool whose connections are all in use is busy, not away', async () => {
    const database = new StoreDatabase({
      pool: { connectionString: await server.createDatabase(), max: 1, connectionTimeoutMillis: 150 },
      logger,
      hasServerTimeouts: true,
    });
    const changes: boolean[] = [];
    database.onStatus((isUp) => changes.push(isUp));
    const working = database.read(async (connection) => {
      for (let round = 0; round < 20; round += 1) await sql`select pg_sleep(0.03)`.execute(connection);
    });
    await expect(database.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
    await working;
    expect(changes).toEqual([]);
    await database.close();
  });

  test('an unreachable server is one clear error', async () => {
    const opening = openStore({ kind: 'postgres', url: 'postgres://postgres@127.0.0.1:1/none', logger });
    await expect(opening).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'the database cannot be asked: connect ECONNREFUSED 127.0.0.1:1',
    });
  });
});

/** Orders ids differently for every seed. */
function hash(text: string, seed: number): number {
  let value = seed * 7_919 + 17;
  for (let at = 0; at < text.length; at += 1) value = (value * 31 + text.charCodeAt(at)) % 1_000_003;
  return value;
}
