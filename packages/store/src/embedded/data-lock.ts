import { mkdir, readFile, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PatchbayError } from '@patchbay/core';
import type { StoreLog } from '../store-log.js';
import { isAlive, processStart } from './process-start.js';

/** What the lock file says of the process that has the directory. */
interface Holder {
  readonly pid: number;
  /** See {@link processStart}; absent where the system does not tell. */
  readonly start?: string;
  readonly host: string;
}

const FILE = 'patchbay.lock';
const TAKE_TIMEOUT_MS = 10_000;
const PAUSE_MS = 20;
const SIGN_OF_LIFE_MS = 5_000;
/** A holder on another machine or in another container, whose pid says nothing here, is gone after so long. */
const SILENT_AFTER_MS = 20_000;
/** A lock that is being written, or a takeover under way, takes milliseconds; what is older was left by a crash. */
const HALFWAY_MS = 5_000;

/** The right to a data directory: a file in it that names the process. */
export class DataLock {
  readonly #file: string;
  readonly #text: string;
  readonly #timer: NodeJS.Timeout;

  private constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
    this.#timer = setInterval(() => void touch(file), SIGN_OF_LIFE_MS).unref();
  }

  /**
   * Takes the lock; one whose process is gone is taken over.
   * @throws PatchbayError invalid_argument that names the process and the directory when it is in use
   */
  static async take(dataDir: string, logger: StoreLog): Promise<DataLock> {
    const file = join(dataDir, FILE);
    const start = processStart(process.pid);
    const me: Holder = { pid: process.pid, host: hostname(), ...(start === undefined ? {} : { start }) };
    const text = `${JSON.stringify(me)}\n`;
    const end = performance.now() + TAKE_TIMEOUT_MS;
    for (;;) {
      if (await createFile(file, text)) return new DataLock(file, text);
      const holder = await findHolder(file);
      if (holder !== undefined) throw inUse(dataDir, holder);
      if (await removeStale(file)) {
        logger.warn({ dataDir }, 'took over the data directory of a process that is gone');
      } else if (performance.now() > end) {
        throw new PatchbayError(
          'invalid_argument',
          `${file} cannot be taken over; remove it if no Patchbay runs on it`,
        );
      } else {
        await sleep(PAUSE_MS);
      }
    }
  }

  /** Gives the directory back. A lock that somebody else has taken meanwhile is left alone. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    if ((await readIfThere(this.#file)) === this.#text) await rm(this.#file, { force: true });
  }
}

/**
 * Removes a lock whose process is gone. One process at a time (a directory is the mutex) and judged again inside:
 * what stood there a moment ago may have been taken over, and be somebody's fresh lock by now.
 * @returns whether it did
 */
async function removeStale(file: string): Promise<boolean> {
  const mutex = `${file}.takeover`;
  if (!(await createFolder(mutex))) {
    if ((await ageMs(mutex)) > HALFWAY_MS) await rmdir(mutex).catch(ignoreMissing);
    return false;
  }
  try {
    if ((await readIfThere(file)) === undefined || (await findHolder(file)) !== undefined) return false;
    await rm(file, { force: true });
    return true;
  } finally {
    await rmdir(mutex).catch(ignoreMissing);
  }
}

/** Who holds the lock: `unknown` while it is being written, undefined when it is stale or gone. */
async function findHolder(file: string): Promise<Holder | 'unknown' | undefined> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  const holder = parseHolder(text);
  if (holder === undefined) return (await ageMs(file)) < HALFWAY_MS ? 'unknown' : undefined;
  if (holder.host !== hostname()) return (await ageMs(file)) < SILENT_AFTER_MS ? holder : undefined;
  if (!isAlive(holder.pid)) return undefined;
  const start = processStart(holder.pid);
  // Without a start to compare, a living pid counts as the holder: refusing wrongly harms less than sharing the data.
  const isSame = holder.start === undefined || start === undefined || holder.start === start;
  return isSame ? holder : undefined;
}

function inUse(dataDir: string, holder: Holder | 'unknown'): PatchbayError {
  return new PatchbayError(
    'invalid_argument',
    `the data directory ${dataDir} is in use by ${describe(holder)}; stop it, or choose another directory with PATCHBAY_DATA_DIR`,
    { details: { dataDir, ...(holder === 'unknown' ? {} : { pid: holder.pid }) } },
  );
}

function describe(holder: Holder | 'unknown'): string {
  if (holder === 'unknown') return 'a process that is starting';
  if (holder.host !== hostname()) return `a process on ${holder.host} (pid ${holder.pid})`;
  return `${holder.pid === process.pid ? 'this process already' : 'another process'} (pid ${holder.pid})`;
}

async function touch(file: string): Promise<void> {
  const now = new Date();
  await utimes(file, now, now).catch(() => {}); // at worst another machine takes it for silent
}

/** Infinite when there is none. */
async function ageMs(path: string): Promise<number> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch (error) {
    ignoreMissing(error);
    return Infinity;
  }
}

function parseHolder(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    return typeof holder?.pid === 'number' ? (holder as Holder) : undefined;
  } catch {
    return undefined;
  }
}

/** @returns false when there is one already */
async function createFile(file: string, text: string): Promise<boolean> {
  return await unlessThere(writeFile(file, text, { flag: 'wx', mode: 0o600 }));
}

/** @returns false when there is one already */
async function createFolder(folder: string): Promise<boolean> {
  return await unlessThere(mkdir(folder, { mode: 0o700 }));
}

async function unlessThere(creation: Promise<unknown>): Promise<boolean> {
  try {
    await creation;
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    ignoreMissing(error);
    return undefined;
  }
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
