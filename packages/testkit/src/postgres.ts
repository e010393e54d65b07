import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { ensurePostgres } from './postgres-binaries.js';
import { postgresEnvironment } from './postgres-environment.js';
import { enterableBin, postgresUser } from './postgres-user.js';
import type { PostgresUser } from './postgres-user.js';

const run = promisify(execFile);

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 10_000;
const LOG_TAIL = 4_000;
/** For a database that nobody wants back: no flushing, little memory. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '64MB',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
};

/** A real Postgres of the test's own: port, data and life. Ends with the process at the latest. */
export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  readonly #bin: string;
  readonly #folder: string;
  readonly #user: PostgresUser | undefined;
  #child: ChildProcess | undefined;
  #databases = 0;
  readonly #killOnExit = (): void => void this.#child?.kill('SIGKILL');

  private constructor(parts: { port: number; bin: string; folder: string; user: PostgresUser | undefined }) {
    this.port = parts.port;
    this.#bin = parts.bin;
    this.#folder = parts.folder;
    this.#user = parts.user;
    process.once('exit', this.#killOnExit);
  }

  /** Creates a server with empty data and starts it. @throws Error with its log when it does not start */
  static async create(): Promise<PostgresServer> {
    const user = postgresUser();
    const bin = await enterableBin(await ensurePostgres(), user);
    const folder = await mkdtemp(join(tmpdir(), 'patchbay-pg-'));
    if (user !== undefined) await chown(folder, user.uid, user.gid);
    const server = new PostgresServer({ port: await freePort(), bin, folder, user });
    try {
      const create = ['-D', server.#data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
      await run(join(bin, 'initdb'), create, { ...server.#spawnOptions(), timeout: START_TIMEOUT_MS });
      await server.start();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** The URL of the database that every server has. */
  get url(): string {
    return this.#urlOf('postgres');
  }

  /** A new, empty database. @returns its URL */
  async createDatabase(): Promise<string> {
    const name = `test_${++this.#databases}`;
    const client = new Client({ connectionString: this.url, connectionTimeoutMillis: STOP_TIMEOUT_MS });
    await client.connect();
    try {
      await client.query(`create database ${name} template template0`);
    } finally {
      await client.end();
    }
    return this.#urlOf(name);
  }

  /** Rows of one statement in a database of this server. @param url Of the database. Default: the one that every server has */
  async query<Row extends object>(text: string, url: string = this.url): Promise<Row[]> {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: STOP_TIMEOUT_MS });
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** Starts it (again) on the same port with the same data. */
  async start(): Promise<void> {
    // After a kill the old backends hold the shared memory for a moment, and a new server refuses to start.
    await eventually(() => this.#tryStart(), { withinMs: START_TIMEOUT_MS, everyMs: 100, what: 'a running Postgres' });
  }

  /** Stops every process of it (SIGSTOP): connections stay open and nobody answers. */
  pause(): void {
    this.#signalAll('SIGSTOP');
  }

  /** Ends a pause. */
  resume(): void {
    this.#signalAll('SIGCONT');
  }

  /** Kills every process of it (SIGKILL); the data stay for `start`. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = exited(child);
    this.#signalAll('SIGKILL');
    await ended;
    this.#child = undefined;
  }

  /** Ends it as an administrator would (connections are cut), then starts it again. */
  async restart(): Promise<void> {
    await this.#shutDown();
    await this.start();
  }

  /** Ends it and removes its data. Idempotent. */
  async stop(): Promise<void> {
    process.off('exit', this.#killOnExit);
    await this.#shutDown();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  #urlOf(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  async #tryStart(): Promise<true> {
    const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = spawn(join(this.#bin, 'postgres'), ['-D', this.#data, '-p', String(this.port), ...settings], {
      ...this.#spawnOptions(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    await ready(child);
    this.#child = child;
    return true;
  }

  /** Fast shutdown; a server that is paused or does not end is killed. */
  async #shutDown(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = exited(child);
    this.resume();
    child.kill('SIGINT');
    const timer = setTimeout(() => this.#signalAll('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(timer);
    this.#child = undefined;
  }

  #spawnOptions(): { uid?: number; gid?: number; cwd: string; env: NodeJS.ProcessEnv } {
    return { ...this.#user, cwd: this.#folder, env: postgresEnvironment(this.#bin) };
  }

  #signalAll(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    // The parent first: it must not start anything while its children are stopped.
    for (const each of [pid, ...childrenOf(pid)]) {
      try {
        process.kill(each, signal);
      } catch {
        // gone meanwhile
      }
    }
  }
}

/** Starts a real Postgres for a test; `await using` or `stop()` ends it. Finds or fetches one, see `ensurePostgres`. */
export async function startPostgres(): Promise<PostgresServer> {
  return await PostgresServer.create();
}

/** Resolves when the server accepts connections; fails with the end of its log. */
async function ready(child: ChildProcess): Promise<void> {
  let log = '';
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`Postgres did not start within ${START_TIMEOUT_MS} ms: ${log}`));
    }, START_TIMEOUT_MS);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_TAIL);
      if (log.includes('database system is ready to accept connections')) {
        clearTimeout(timer);
        resolve();
      }
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`Postgres ended with code ${code}: ${log}`));
    });
  });
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
}

function childrenOf(pid: number): number[] {
  if (!existsSync('/proc/self/stat')) return [];
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      // Past the name in parentheses: state, then the parent's pid.
      const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
      return parent === String(pid) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
