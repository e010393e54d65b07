import { cpSync, existsSync, readFileSync, renameSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Who runs a Postgres. */
export interface PostgresUser {
  readonly uid: number;
  readonly gid: number;
}

/** Postgres refuses to run as root: then another user does. Undefined when we are an ordinary user and can. */
export function postgresUser(): PostgresUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  return { uid: 65_534, gid: 65_534 };
}

/**
 * `bin` itself, or a copy of the tree around it in a folder that everybody may enter: a clone may lie in root's own
 * home, where the user who runs Postgres may not go.
 */
export async function enterableBin(bin: string, user: PostgresUser | undefined): Promise<string> {
  if (user === undefined || ancestors(bin).every(isOpenToAll)) return bin;
  // .../native/bin of the npm package, or .../usr/lib/postgresql/15/bin of unpacked packages.
  const usr = bin.lastIndexOf('/usr/lib/postgresql/');
  const root = usr === -1 ? dirname(bin) : bin.slice(0, usr);
  const name = `patchbay-postgres-${createHash('sha256').update(root).digest('hex').slice(0, 12)}`;
  const target = join(tmpdir(), name);
  if (!existsSync(target)) {
    const making = await mkdtemp(`${target}-`);
    cpSync(root, join(making, 'tree'), { recursive: true, verbatimSymlinks: true });
    try {
      renameSync(join(making, 'tree'), target);
    } catch (error) {
      if (!existsSync(target)) throw error; // another process was as fast
    } finally {
      await rm(making, { recursive: true, force: true });
    }
  }
  return join(target, bin.slice(root.length));
}

function ancestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...ancestors(parent)];
}

function isOpenToAll(folder: string): boolean {
  return (statSync(folder).mode & 0o001) !== 0;
}
