import { existsSync } from 'node:fs';
import { mkdir, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { PatchbayError } from '@patchbay/core';
import type { EmbeddedStoreOptions } from '../open-store.js';
import type { StoreLog } from '../store-log.js';
import { ensureDatabaseFolder } from './database-folder.js';
import type { DatabaseWorkerData, DatabaseWorkerMessage } from './database-worker.js';
import { DataLock } from './data-lock.js';
import { prepareSocketFolder, removeSocketFolder, socketFolder, socketPath } from './socket-folder.js';

/** What the watchdog asks the user of the database. */
export interface WatchedDatabase {
  ping(): Promise<void>;
  /** When a statement was last answered, on the clock of `performance.now()`. */
  readonly lastAnswerAtMs: number;
}

const OPEN_TIMEOUT_MS = 60_000;
const CLOSE_TIMEOUT_MS = 10_000;
const WATCH_INTERVAL_MS = 5_000;
/** Longer than any one statement may take, so that a slow one is not mistaken for a wedged worker. */
const WEDGED_AFTER_MS = 15_000;
const RESTART_PAUSE_MS = 1_000;

/** How the watchdog decides; other values are for tests. */
export interface WatchOptions {
  readonly intervalMs?: number;
  readonly wedgedAfterMs?: number;
}

/**
 * Postgres in WebAssembly for one process: a worker thread that serves `<dataDir>/db` on a unix socket. Whoever uses
 * it connects with `pg` and one connection.
 */
export class EmbeddedDatabase {
  /** The folder of the socket: `host` for `pg`. */
  readonly socketDir: string;
  readonly #folder: string;
  readonly #lock: DataLock;
  readonly #logger: StoreLog;
  #worker: Worker | undefined;
  #isStopping = false;
  #replacing: Promise<void> | undefined;

  private constructor(parts: { socketDir: string; folder: string; lock: DataLock; logger: StoreLog }) {
    this.socketDir = parts.socketDir;
    this.#folder = parts.folder;
    this.#lock = parts.lock;
    this.#logger = parts.logger;
  }

  /**
   * Takes the data directory, creates the database when there is none, and serves it.
   * @throws PatchbayError invalid_argument when the directory is in use or unusable; store_unavailable when the
   * database cannot be created or opened
   */
  static async start(options: Omit<EmbeddedStoreOptions, 'kind'>): Promise<EmbeddedDatabase> {
    const dataDir = await ensureDataDir(options.dataDir);
    const lock = await DataLock.take(dataDir, options.logger);
    const socketDir = socketFolder(dataDir);
    try {
      const folder = await ensureDatabaseFolder(dataDir, options);
      await prepareSocketFolder(socketDir);
      const embedded = new EmbeddedDatabase({ socketDir, folder, lock, logger: options.logger });
      await embedded.#open();
      return embedded;
    } catch (error) {
      await removeSocketFolder(socketDir);
      await lock.release();
      throw error;
    }
  }

  /** Asks `database` for signs of life and replaces the worker when there are none; returns the way to stop that. */
  watch(database: WatchedDatabase, options: WatchOptions = {}): () => void {
    const { intervalMs = WATCH_INTERVAL_MS, wedgedAfterMs = WEDGED_AFTER_MS } = options;
    let isAsking = false;
    const timer = setInterval(() => {
      if (isAsking) return;
      isAsking = true;
      database
        .ping()
        .catch((error: unknown) => {
          const silentMs = performance.now() - database.lastAnswerAtMs;
          if (silentMs > wedgedAfterMs) this.#replace(`it has not answered for ${Math.round(silentMs)} ms`, error);
        })
        .finally(() => (isAsking = false));
    }, intervalMs).unref();
    return () => clearInterval(timer);
  }

  /** Leaves the database clean and gives the data directory back. Connections must have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#replacing;
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker !== undefined) await this.#closeWorker(worker);
    await removeSocketFolder(this.socketDir);
    await this.#lock.release();
  }

  async #closeWorker(worker: Worker): Promise<void> {
    const closed = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), CLOSE_TIMEOUT_MS);
      const finish = (isClean: boolean): void => {
        clearTimeout(timer);
        resolve(isClean);
      };
      worker.on('message', (message: DatabaseWorkerMessage) => {
        if (message === 'closed') finish(true);
      });
      worker.once('exit', () => finish(false));
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage('close');
    if (!(await closed))
      this.#logger.warn({}, 'the embedded database did not close in time; its log is replayed next time');
    await worker.terminate();
  }

  async #open(): Promise<void> {
    const data: DatabaseWorkerData = { folder: this.#folder, socketPath: socketPath(this.socketDir) };
    const worker = new Worker(new URL('./database-worker.js', import.meta.url), {
      workerData: data,
      execArgv: [],
      stdout: false,
    });
    try {
      await opened(worker);
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    this.#worker = worker;
    let failure: unknown;
    worker.on('error', (error) => (failure = error));
    worker.once('exit', () => {
      if (this.#worker === worker) this.#replace('its worker has ended', failure);
    });
  }

  #replace(reason: string, error: unknown): void {
    if (this.#isStopping || this.#replacing !== undefined) return;
    this.#logger.error({ err: error }, `the embedded database is started anew: ${reason}`);
    this.#replacing = this.#restart().finally(() => (this.#replacing = undefined));
  }

  async #restart(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
    while (!this.#isStopping) {
      try {
        await prepareSocketFolder(this.socketDir);
        await this.#open();
        this.#logger.info({}, 'the embedded database is open again');
        return;
      } catch (error) {
        this.#logger.error({ err: error }, 'the embedded database cannot be opened; trying again');
        await sleep(RESTART_PAUSE_MS);
      }
    }
  }
}

async function ensureDataDir(dataDir: string): Promise<string> {
  try {
    await makeFolder(resolve(dataDir));
    return await realpath(dataDir);
  } catch (cause) {
    throw new PatchbayError(
      'invalid_argument',
      `the data directory ${dataDir} cannot be made: ${(cause as Error).message}; choose another with PATCHBAY_DATA_DIR`,
      { cause },
    );
  }
}

/** Makes a folder and those above it. Not with `recursive`: where nothing can be made (`/proc/x`), Node tries for ever. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(folder) === folder || existsSync(dirname(folder))) throw error;
    await makeFolder(dirname(folder));
    await mkdir(folder, { mode: 0o700 });
  }
}

/** Resolves when the worker serves, and fails with what kept it from that. */
async function opened(worker: Worker): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const fail = (what: string, cause?: unknown): void => {
      cleanUp();
      reject(new PatchbayError('store_unavailable', `the embedded database cannot be opened: ${what}`, { cause }));
    };
    const timer = setTimeout(() => fail(`it took more than ${OPEN_TIMEOUT_MS / 1_000} s`), OPEN_TIMEOUT_MS);
    const onMessage = (): void => {
      cleanUp();
      resolve();
    };
    const onError = (error: Error): void => fail(error.message, error);
    const onExit = (): void => fail('its worker has ended');
    const cleanUp = (): void => {
      clearTimeout(timer);
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
  });
}
