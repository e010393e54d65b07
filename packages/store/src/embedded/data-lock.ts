import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
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
const MAX_ATTEMPTS = 10;

/**
 * The right to a data directory: a file that names the process. It is put in place in one step (a hard link of a
 * file that is already written), so no reader ever sees half of it.
 */
export class DataLock {
  readonly #file: string;
  readonly #text: string;

  private constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
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
    const draft = `${file}.${process.pid}`;
    await writeFile(draft, text, { mode: 0o600 });
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        if (await linkUnlessThere(draft, file)) return new DataLock(file, text);
        await clearIfStale(file, dataDir, logger);
      }
    } finally {
      await rm(draft, { force: true });
    }
    throw new PatchbayError(
      'invalid_argument',
      `the lock ${file} changes hands too fast; start one process on ${dataDir}, or give each its own PATCHBAY_DATA_DIR`,
    );
  }

  /** Gives the directory back. A lock that somebody else has taken meanwhile is left alone. */
  async release(): Promise<void> {
    if ((await readIfThere(this.#file)) === this.#text) await rm(this.#file, { force: true });
  }
}

async function clearIfStale(file: string, dataDir: string, logger: StoreLog): Promise<void> {
  const text = await readIfThere(file);
  if (text === undefined) return;
  const holder = parseHolder(text);
  if (holder !== undefined && isHeld(holder)) {
    const who = holder.pid === process.pid ? 'this process already' : 'another process';
    throw new PatchbayError(
      'invalid_argument',
      `the data directory ${dataDir} is in use by ${who} (pid ${holder.pid}); stop it, or choose another directory with PATCHBAY_DATA_DIR`,
      { details: { pid: holder.pid, dataDir } },
    );
  }
  // Taken out of the way under a name of our own and looked at again: another process may have been faster, and what
  // stands there now may be its fresh lock.
  const aside = `${file}.stale-${process.pid}`;
  try {
    await rename(file, aside);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  if ((await readIfThere(aside)) === text) {
    logger.warn({ pid: holder?.pid, dataDir }, 'took over the data directory of a process that is gone');
  } else {
    await linkUnlessThere(aside, file);
  }
  await rm(aside, { force: true });
}

function isHeld(holder: Holder): boolean {
  if (!isAlive(holder.pid)) return false;
  const start = processStart(holder.pid);
  // Without a start to compare, a living pid counts as the holder: refusing wrongly harms less than sharing the data.
  return holder.start === undefined || start === undefined || holder.start === start;
}

function parseHolder(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    return typeof holder?.pid === 'number' ? (holder as Holder) : undefined;
  } catch {
    return undefined;
  }
}

async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}
