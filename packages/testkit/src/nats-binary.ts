import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Folder of the clone for what tests fetch; not under version control. */
const CACHE = fileURLToPath(new URL('../../../.cache/', import.meta.url));
const CACHED = join(CACHE, 'nats-server/usr/sbin/nats-server');
const PLACES = ['nats-server', CACHED, '/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'];
const COMMAND_LIMIT_MS = 120_000;

let found: Promise<string> | undefined;

/**
 * The command of a `nats-server` that runs on this machine: from PATH, from `.cache/`, from the usual folders, else
 * fetched from the distribution's packages and unpacked into `.cache/`. Nothing is installed, so no service starts.
 *
 * @throws Error that says how to get one
 */
export function ensureNatsServer(): Promise<string> {
  found ??= find();
  return found;
}

async function find(): Promise<string> {
  for (const command of PLACES) if (await runs(command)) return command;
  try {
    await fetchPackage();
  } catch (cause) {
    throw new Error(
      'no nats-server found, and it could not be fetched with apt-get. Install it ("apt-get install nats-server", ' +
        '"brew install nats-server", or a release from https://github.com/nats-io/nats-server/releases) and put it on PATH.',
      { cause },
    );
  }
  return CACHED;
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
async function fetchPackage(): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const work = await mkdtemp(join(CACHE, 'nats-server-'));
  try {
    await download(work);
    const [archive] = (await readdir(work)).filter((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get download left no package');
    const unpacked = join(work, 'unpacked');
    await run('dpkg', ['-x', join(work, archive), unpacked], { timeout: COMMAND_LIMIT_MS });
    await rename(unpacked, join(CACHE, 'nats-server')).catch(async (error: unknown) => {
      if (!(await runs(CACHED))) throw error;
    });
    if (!(await runs(CACHED))) throw new Error('the unpacked nats-server does not run');
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
