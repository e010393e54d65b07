import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PatchbayError } from '@patchbay/core';

/** The name of Postgres' socket in its folder, as `pg` expects it. */
const SOCKET_NAME = '.s.PGSQL.5432';
/** Longest path of a unix socket; Node cuts longer ones off without a word. */
const MAX_PATH_BYTES = 103;
const SHORT_TMPDIR = '/tmp';

/** The folder for the socket of the database in `dataDir`: the same one at every start, and short. */
export function socketFolder(dataDir: string): string {
  const name = `patchbay-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`;
  const folder = [tmpdir(), SHORT_TMPDIR]
    .map((parent) => join(parent, name))
    .find((path) => Buffer.byteLength(join(path, SOCKET_NAME)) <= MAX_PATH_BYTES);
  if (folder === undefined) throw new PatchbayError('internal', `no folder is short enough for a socket`);
  return folder;
}

/** The socket itself. */
export function socketPath(folder: string): string {
  return join(folder, SOCKET_NAME);
}

/**
 * Makes the folder ours alone and empty. Whoever may connect to the socket owns the data, so a folder that somebody
 * else has put there is refused. The caller holds the data lock: a socket found here is a dead one.
 */
export async function prepareSocketFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new PatchbayError(
      'invalid_argument',
      `${folder} must be a folder of the user who runs Patchbay; remove it, or set TMPDIR to a folder of your own`,
    );
  }
  await chmod(folder, 0o700);
  await rm(socketPath(folder), { force: true });
}

export async function removeSocketFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
