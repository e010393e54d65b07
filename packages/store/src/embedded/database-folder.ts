import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PatchbayError } from '@patchbay/core';
import type { StoreLog } from '../store-log.js';

const FOLDER = 'db';
const CREATING_PREFIX = 'db.creating-';
const CREATION_TIMEOUT_MS = 120_000;
/** Measured: creating a database peaks near 850 MB. */
const CREATION_MEMORY_MB = 900;
/** Measured: what an empty database takes on disk. */
const CREATION_DISK_MB = 40;
const STDERR_TAIL = 2_000;

/**
 * The folder of the database below `dataDir`, created when there is none. It is made beside its place and renamed
 * when it is whole, so a process that is killed in between leaves nothing that looks like a database. The caller
 * holds the data lock.
 */
export async function ensureDatabaseFolder(
  dataDir: string,
  options: { readonly logger: StoreLog; readonly onCreating?: () => void },
): Promise<string> {
  const { logger } = options;
  const folder = join(dataDir, FOLDER);
  await removeHalfCreated(dataDir);
  if (isWhole(folder)) return folder;
  if (existsSync(folder)) {
    const aside = `${folder}.broken-${Date.now()}`;
    logger.warn({ folder, aside }, 'the folder of the database holds none; it is moved aside');
    await rename(folder, aside);
  }
  const making = join(dataDir, `${CREATING_PREFIX}${process.pid}`);
  await mkdir(making, { mode: 0o700 });
  options.onCreating?.();
  const startedAtMs = performance.now();
  try {
    await createDatabase(making);
    await rename(making, folder);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    throw error;
  }
  await flushFolder(dataDir);
  logger.info({ folder, ms: Math.round(performance.now() - startedAtMs) }, 'the embedded database was created');
  return folder;
}

function isWhole(folder: string): boolean {
  return existsSync(join(folder, 'PG_VERSION')) && existsSync(join(folder, 'global', 'pg_control'));
}

async function removeHalfCreated(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(CREATING_PREFIX)) continue;
    // The child of a process that was killed may write there for a moment longer.
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** Makes the rename itself survive a power cut. */
async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function createDatabase(folder: string): Promise<void> {
  const child = fork(fileURLToPath(new URL('./create-database.js', import.meta.url)), [folder], {
    // Its own process group is not wanted: Ctrl-C ends it too. Flags such as --inspect are not inherited.
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_TAIL)));
  const end = await new Promise<{ code: number | null; signal: NodeJS.Signals | null; isLate: boolean }>(
    (resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        child.kill('SIGKILL');
      }, CREATION_TIMEOUT_MS);
      child.once('error', (error) => {
        clearTimeout(timer);
        reject(new PatchbayError('store_unavailable', `cannot start ${process.execPath}: ${error.message}`));
      });
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        resolve({ code, signal, isLate });
      });
    },
  );
  if (end.code === 0) return;
  throw creationError(end, stderr);
}

/** Says why a database could not be created, and what to do. */
export function creationError(
  end: { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly isLate: boolean },
  stderr: string,
): PatchbayError {
  const memory = `it needs about ${CREATION_MEMORY_MB} MB of memory while it does that, and ${Math.round(freemem() / 1_048_576)} MB are free`;
  const cure = 'free some memory, or set PATCHBAY_DATABASE_URL to a Postgres of your own';
  if (end.isLate) {
    return new PatchbayError(
      'store_unavailable',
      `creating the embedded database took more than ${CREATION_TIMEOUT_MS / 1_000} s; ${memory}; ${cure}`,
    );
  }
  const isOutOfMemory = end.signal === 'SIGKILL' || /out of memory|could not allocate|Cannot allocate/i.test(stderr);
  if (isOutOfMemory) {
    return new PatchbayError(
      'store_unavailable',
      `the process that creates the embedded database was killed, most likely for lack of memory: ${memory}; ${cure}`,
    );
  }
  // 51 is ENOSPC in WebAssembly's own numbering.
  if (/No space left|ENOSPC|ErrnoError[^}]*errno: 51\b/.test(stderr)) {
    return new PatchbayError(
      'store_unavailable',
      `no space left on the disk for the embedded database, which begins with about ${CREATION_DISK_MB} MB; free some, or choose another folder with PATCHBAY_DATA_DIR`,
    );
  }
  const lastLines = stderr.trim().split('\n').slice(-3).join(' | ');
  const how = end.signal === null ? `exit code ${end.code}` : end.signal;
  return new PatchbayError('store_unavailable', `creating the embedded database failed (${how}): ${lastLines}`);
}
