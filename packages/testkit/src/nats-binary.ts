import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Folder of the clone for what tests fetch; not under version control. */
const CACHE = fileURLToPath(new URL('../../../.cache/', import.meta.url));
const PLACES = ['nats-server', '/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'];
const COMMAND_LIMIT_MS = 120_000;

let found: Promise<string> | undefined;

/**
 * The command of a `nats-server` that runs on this machine: from PATH, from the usual folders, from `.cache/`, else
 * fetched from the distribution's packages and unpacked into `.cache/`. Nothing is installed, so no service starts.
 *
 * @throws Error that says how to get one
 */
export function ensureNatsServer(): Promise<string> {
  found ??= findOrFetchNatsServer(PLACES, CACHE);
  return found;
}

/** The same with other places to look at, and another folder to fetch it into. */
export async function findOrFetchNatsServer(places: readonly string[], cache: string): Promise<string> {
  const fetched = join(cache, 'nats-server/usr/sbin/nats-server');
  for (const command of [...places, fetched]) if (await runs(command)) return command;
  try {
    await fetchPackage(cache, fetched);
  } catch (cause) {
    throw new Error(
      'no nats-server found. Install it (Debian: apt-get install nats-server; macOS: brew install nats-server; or a ' +
        'release from https://github.com/nats-io/nats-server/releases) and put it on PATH. ' +
        `Fetching it failed: ${lastLine(cause)}`,
      { cause },
    );
  }
  return fetched;
}

/** What the command that failed said last. */
function lastLine(error: unknown): string {
  const { stderr = '', message } = error as Error & { readonly stderr?: string };
  const said = stderr.trim().split('\n').at(-1) ?? '';
  return said === '' ? message.trim() : said;
}

async function runs(command: string): Promise<boolean> {
  try {
    await run(command, ['--version'], { timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

/** Unpacks beside the final place and renames at the end, so that two test runs do not meet half a server. */
async function fetchPackage(cache: string, fetched: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, 'nats-server-'));
  try {
    await download(work);
    const [archive] = (await readdir(work)).filter((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get download left no package');
    const unpacked = join(work, 'unpacked');
    await run('dpkg', ['-x', join(work, archive), unpacked], { timeout: COMMAND_LIMIT_MS });
    await rename(unpacked, join(cache, 'nats-server')).catch(async (error: unknown) => {
      if (!(await runs(fetched))) throw error;
    });
    if (!(await runs(fetched))) throw new Error('the unpacked nats-server does not run');
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** With the machine's package lists, else with fresh ones in our own folder: an ordinary user may not renew those. */
async function download(folder: string): Promise<void> {
  const limits = { cwd: folder, timeout: COMMAND_LIMIT_MS };
  const sandboxOff = ['-o', 'APT::Sandbox::User=root'];
  try {
    await run('apt-get', [...sandboxOff, 'download', 'nats-server'], limits);
    return;
  } catch {
    await mkdir(join(folder, 'lists/partial'), { recursive: true });
    await mkdir(join(folder, 'archives/partial'), { recursive: true });
  }
  const own = [...sandboxOff, '-o', `Dir::State::lists=${join(folder, 'lists')}`, '-o', `Dir::Cache=${folder}`];
  await run('apt-get', [...own, 'update'], limits);
  await run('apt-get', [...own, 'download', 'nats-server'], limits);
}
