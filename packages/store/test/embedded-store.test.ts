import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrate, openStore } from '@patchbay/store';
import type { OpenedStore } from '@patchbay/store';
import { eventually } from '@patchbay/testkit';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EmbeddedDatabase } from '../dist/embedded/embedded-database.js';
import { Vacuum } from '../dist/embedded/vacuum.js';
import { PostgresLivenessStore } from '../dist/postgres/postgres-liveness-store.js';
import { PostgresRegistryStore } from '../dist/postgres/postgres-registry-store.js';
import { StoreDatabase } from '../dist/postgres/store-database.js';
import { RecordedLog } from './recorded-log.js';
import { codesOf, describeStore, history, record, register } from './store-contract.js';

const OPTIONS = { nodeId: 'node-a', maxAgents: 0 };
const WRITER = fileURLToPath(new URL('./fixtures/write-until-killed.mjs', import.meta.url));

let root: string;
let template: string;
const children = new Set<Writer>();

type Writer = ChildProcessByStdio<null, Readable, Readable>;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'patchbay-store-'));
  template = join(root, 'template');
  await migrate({ kind: 'embedded', dataDir: template, logger: new RecordedLog() });
}, 120_000);
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

/** A data directory with an empty database: creating one takes seconds, copying one does not. */
async function freshDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(root, 'data-'));
  await cp(join(template, 'db'), join(dataDir, 'db'), { recursive: true });
  return dataDir;
}

async function open(dataDir: string, logger = new RecordedLog()): Promise<OpenedStore> {
  return await openStore({ kind: 'embedded', dataDir, logger });
}

/** One embedded database for all tests of the contract, emptied before each: opening one takes a second. */
class SharedStore {
  readonly #embedded: EmbeddedDatabase;
  readonly #database: StoreDatabase;

  private constructor(embedded: EmbeddedDatabase, database: StoreDatabase) {
    this.#embedded = embedded;
    this.#database = database;
  }

  static async start(dataDir: string): Promise<SharedStore> {
    const logger = new RecordedLog();
    const embedded = await EmbeddedDatabase.start({ dataDir, logger });
    const pool = { host: embedded.socketDir, user: 'postgres', database: 'postgres', max: 1 };
    return new SharedStore(embedded, new StoreDatabase({ pool, logger, hasServerTimeouts: false }));
  }

  async empty(): Promise<OpenedStore> {
    const database = this.#database;
    await database.write(async (transaction) => {
      await sql`truncate agents, agent_liveness, registry_events`.execute(transaction);
      await sql`update registry_head set revision = 0, agent_count = 0, pruned_to = 0`.execute(transaction);
      await sql`update liveness_sweep set completed_at = null, grace_until = null`.execute(transaction);
    });
    return {
      registry: new PostgresRegistryStore(database),
      liveness: new PostgresLivenessStore(database),
      isUp: true,
      onStatus: (listener) => database.onStatus(listener),
      close: async () => {},
    };
  }

  /** @returns the size of the history, which is empty, in bytes */
  async vacuum(logger: RecordedLog): Promise<{ deadBefore: number; deadAfter: number }> {
    const size = async (): Promise<number> => {
      const { rows } = await this.#database.read((connection) =>
        sql<{ size: number }>`select pg_relation_size('registry_events') as size`.execute(connection),
      );
      return rows[0]?.size ?? -1;
    };
    const deadBefore = await size();
    const vacuum = new Vacuum(this.#database, logger);
    await vacuum.run();
    vacuum.stop();
    return { deadBefore, deadAfter: await size() };
  }

  async end(): Promise<void> {
    await this.#database.close();
    await this.#embedded.stop();
  }
}

/** Starts another process that opens `dataDir` and writes; resolves lines of what it prints. */
function startWriter(dataDir: string): { child: Writer; lines: string[] } {
  const child = spawn(process.execPath, [WRITER, dataDir], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  return { child, lines };
}

async function killHard(child: Writer): Promise<void> {
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  child.kill('SIGKILL');
  await ended;
}

let shared: SharedStore | undefined;
afterAll(async () => {
  await shared?.end();
});

describeStore('the embedded database', async () => {
  shared ??= await SharedStore.start(await freshDataDir());
  return await shared.empty();
});

describe('an embedded database', () => {
  test('closes clean, and a second start finds everything again', async () => {
    const dataDir = await freshDataDir();
    const first = await open(dataDir);
    await first.registry.write([register('agent-1'), register('agent-2')], OPTIONS);
    const agent = await first.registry.get('agent-1');
    await Promise.all([first.close(), first.close()]);
    expect(readdirSync(dataDir)).toEqual(['db']);
    const logger = new RecordedLog();
    const second = await open(dataDir, logger);
    expect(await second.registry.get('agent-1')).toEqual(agent);
    expect(await second.registry.head()).toEqual({ revision: 2, agentCount: 2, prunedTo: 0 });
    expect(logger.messages).toEqual([]);
    await second.close();
  });

  test('is the data of its user alone', async () => {
    const dataDir = join(root, 'made', 'deep');
    const embedded = await EmbeddedDatabase.start({ dataDir, logger: new RecordedLog() });
    const { socketDir } = embedded;
    expect(Buffer.byteLength(join(socketDir, '.s.PGSQL.5432'))).toBeLessThan(107);
    expect((await stat(socketDir)).mode & 0o777).toBe(0o700);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    await embedded.stop();
    expect(existsSync(socketDir)).toBe(false);
  });

  test('works in a path of 150 characters and more', async () => {
    const dataDir = join(root, 'a'.repeat(100), 'b b'.repeat(30));
    await mkdir(dataDir, { recursive: true });
    await cp(join(template, 'db'), join(dataDir, 'db'), { recursive: true });
    const store = await open(dataDir);
    expect(codesOf(await store.registry.write([register('agent-1')], OPTIONS))).toEqual(['registered']);
    await store.close();
  });

  test('keeps 2 MB batches and small statements apart', async () => {
    const store = await open(await freshDataDir());
    const big = 'é€😀x'.repeat(17_000); // about 200 KB
    const writing = new AbortController();
    const readers = Array.from({ length: 3 }, async (_, reader) => {
      for (let round = 0; !writing.signal.aborted; round += 1) {
        const agentId = `small-${reader}-${round}`;
        await store.registry.write([register(agentId, { description: agentId })], OPTIONS);
        expect((await store.registry.get(agentId))?.record.description).toBe(agentId);
        const lastSeenMs = await store.liveness.databaseTimeMs();
        await store.liveness.recordBeats([{ agentId, lastSeenMs: lastSeenMs + 1_000 }]);
        expect((await store.registry.get(agentId))?.lastSeenMs).toBe(lastSeenMs + 1_000);
      }
    });
    for (let batch = 0; batch < 8; batch += 1) {
      const writes = Array.from({ length: 10 }, (_, index) =>
        register(`big-${batch}-${index}`, { description: `${batch}-${index}`, extra: { big } }),
      );
      await store.registry.write(writes, OPTIONS);
    }
    writing.abort();
    await Promise.all(readers);
    const { head, agents } = await store.registry.snapshot();
    expect(head.agentCount).toBe(agents.length);
    for (const { record: found } of agents) {
      const [kind, ...rest] = found.agentId.split('-');
      const isBig = kind === 'big';
      expect(found.description).toBe(isBig ? rest.join('-') : found.agentId);
      expect(found.extra).toEqual(isBig ? { big } : record(found.agentId).extra);
    }
    expect(await history(store)).toHaveLength(head.revision);
    await store.close();
  });

  test('clears dead rows away, which nobody else does for it', async () => {
    shared ??= await SharedStore.start(await freshDataDir());
    const store = await shared.empty();
    for (let round = 0; round < 20; round += 1) {
      await store.registry.write(
        Array.from({ length: 50 }, (_, index) => register(`agent-${index}`)),
        OPTIONS,
      );
    }
    await store.registry.prune(0);
    const logger = new RecordedLog();
    const { deadBefore, deadAfter } = await shared.vacuum(logger);
    expect(deadBefore).toBeGreaterThan(100_000);
    expect(deadAfter).toBe(0);
    expect(logger.messages).toEqual([]);
  });

  test('that was half created is created anew', async () => {
    const dataDir = await mkdtemp(join(root, 'half-'));
    const { child } = startWriter(dataDir);
    await eventually(() => readdirSync(dataDir).some((name) => name.startsWith('db.creating-')), { withinMs: 20_000 });
    await killHard(child);
    expect(existsSync(join(dataDir, 'db'))).toBe(false);
    // Something else that is no database stands in its place.
    await mkdir(join(dataDir, 'db'));
    await writeFile(join(dataDir, 'db', 'PG_VERSION'), '17');
    const logger = new RecordedLog();
    const store = await open(dataDir, logger);
    expect(await store.registry.head()).toEqual({ revision: 0, agentCount: 0, prunedTo: 0 });
    await store.close();
    expect(logger.messages).toContain('the embedded database was created');
    expect(logger.messages).toContain('the folder of the database holds none; it is moved aside');
  });

  test('keeps every acknowledged write through kill -9', async () => {
    const dataDir = await freshDataDir();
    const { child, lines } = startWriter(dataDir);
    await eventually(() => Number(lines.at(-1)) >= 3_000, { withinMs: 30_000, what: '3,000 acknowledged writes' });
    await killHard(child);
    const acknowledged = Number(lines.at(-1));
    const logger = new RecordedLog();
    const store = await open(dataDir, logger);
    const { head, agents } = await store.registry.snapshot();
    const present = new Set(agents.map((agent) => agent.record.agentId));
    expect(
      Array.from({ length: acknowledged }, (_, index) => `agent-${index}`).filter((id) => !present.has(id)),
    ).toEqual([]);
    expect(head).toEqual({ revision: agents.length, agentCount: agents.length, prunedTo: 0 });
    expect(await history(store)).toHaveLength(head.revision);
    expect(logger.messages).toContain('took over the data directory of a process that is gone');
    await store.close();
  });

  test('belongs to one process: a second one is told which', async () => {
    const dataDir = await freshDataDir();
    const { child, lines } = startWriter(dataDir);
    await eventually(() => lines.includes('open'), { withinMs: 20_000 });
    await expect(open(dataDir)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: `the data directory ${dataDir} is in use by another process (pid ${child.pid}); stop it, or choose another directory with PATCHBAY_DATA_DIR`,
    });
    // Refusing it has harmed nobody.
    const before = Number(lines.at(-1)) || 0;
    await eventually(() => (Number(lines.at(-1)) || 0) > before, { withinMs: 10_000 });
    await killHard(child);

    const store = await open(dataDir);
    await expect(open(dataDir)).rejects.toMatchObject({
      message: expect.stringContaining(`in use by this process already (pid ${process.pid})`) as string,
    });
    await store.registry.head();
    await store.close();
  });

  test('a data directory that cannot be made is one clear error', async () => {
    const file = join(root, 'a-file');
    await writeFile(file, '');
    await expect(open(join(file, 'data'))).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('cannot be made') as string,
    });
  });

  test('a folder for the socket that others may enter is closed to them', async () => {
    const dataDir = await freshDataDir();
    const first = await EmbeddedDatabase.start({ dataDir, logger: new RecordedLog() });
    await first.stop();
    await mkdir(first.socketDir, { mode: 0o777 });
    await chmod(first.socketDir, 0o777);
    await writeFile(join(first.socketDir, '.s.PGSQL.5432'), 'left by a process that is gone');
    const second = await EmbeddedDatabase.start({ dataDir, logger: new RecordedLog() });
    expect((await stat(second.socketDir)).mode & 0o777).toBe(0o700);
    await second.stop();
  });
});

describe('the watchdog', () => {
  test('replaces a worker that does not answer, and nothing that was acknowledged is lost', async () => {
    const dataDir = await freshDataDir();
    const logger = new RecordedLog();
    const embedded = await EmbeddedDatabase.start({ dataDir, logger });
    const database = new StoreDatabase({
      pool: { host: embedded.socketDir, user: 'postgres', database: 'postgres', max: 1, connectionTimeoutMillis: 300 },
      logger,
      statementTimeoutMs: 300,
      connectAgainForMs: 5_000,
      hasServerTimeouts: false,
    });
    await database.ping();
    const client = database.read(async (connection) => {
      await sql`create table kept (n int)`.execute(connection);
      await sql`insert into kept values (7)`.execute(connection);
      // The one backend is busy for a minute, and its thread with it.
      await sql`select pg_sleep(60)`.execute(connection);
    });
    await expect(client).rejects.toMatchObject({ code: 'store_unavailable' });
    const stopWatching = embedded.watch(database, { intervalMs: 100, wedgedAfterMs: 500 });
    await eventually(() => logger.messages.includes('the embedded database is open again'), { withinMs: 20_000 });
    await eventually(() => database.ping().then(() => true), { withinMs: 10_000 });
    stopWatching();
    const { rows } = await database.read((connection) => sql<{ n: number }>`select n from kept`.execute(connection));
    expect(rows).toEqual([{ n: 7 }]);
    await database.close();
    await embedded.stop();
    expect(await readFile(join(dataDir, 'db', 'PG_VERSION'), 'utf8')).toMatch(/^\d+/);
  });
});
