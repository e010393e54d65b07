import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PartFailure, readyOrEnded } from './ready.mjs';

const run = promisify(execFile);

const NAME = 'postgres';
const ROLE = 'patchbay';
const DATABASE = 'patchbay';
const READY_WITHIN_MS = 60_000;
/** What connections are told while it starts and ends; that it does so is said elsewhere. */
const STARTS_OR_ENDS = /system is (starting up|shutting down|not yet accepting)|unexpected postmaster exit/;
/** Where root keeps the data when the user who runs Postgres may not enter the clone. */
const STATE = '/var/lib';

/**
 * Starts the Postgres of the cluster, with its data below `folder`; creates them the first time.
 * @param {object} options
 * @param {string} options.bin Folder of `postgres` and `initdb`.
 * @param {NodeJS.ProcessEnv} options.env Its environment.
 * @param {{ uid: number, gid: number } | undefined} options.user Who runs it, when we are root.
 * @param {string} options.folder
 * @param {number} options.port
 * @param {(part: object) => import('./part.mjs').Part} options.start
 * @param {(line: string) => void} options.say
 */
export async function startPostgres({ bin, env, user, folder, port, start, say }) {
  const home = await findHome(folder, user, say);
  // Data of an earlier start belong to whoever ran it then.
  const owner = user === undefined ? undefined : await ownerOf(home, user);
  const password = await createData({ bin, env, home, folder, owner });
  const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: '100' };
  const part = start({
    name: NAME,
    command: join(bin, 'postgres'),
    args: [
      '-D',
      join(home, 'data'),
      '-p',
      String(port),
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    env,
    cwd: home,
    user: owner,
    // "Fast": ends sessions and shuts down in order.
    stopSignal: 'INT',
    isNews: (line) => /(WARNING|ERROR|FATAL|PANIC): /.test(line) && !STARTS_OR_ENDS.test(line),
    complaint: /(FATAL|PANIC): /,
  });
  const urlOf = (database) => `postgres://${ROLE}:${password}@127.0.0.1:${port}/${database}`;
  await readyOrEnded(part, READY_WITHIN_MS, () => createDatabase(urlOf('postgres')));
  return { part, url: urlOf(DATABASE) };
}

/**
 * The folder for Postgres alone. As root another user must be able to enter it: when the clone lies where only root
 * may go, it is made below /var/lib, with a link in its place.
 */
async function findHome(folder, user, say) {
  const place = join(folder, 'postgres');
  if (await exists(place)) return await realpath(place);
  if (user === undefined || (await isOpenToAll(folder))) {
    await mkdir(place, { mode: 0o700 });
    if (user !== undefined) await chown(place, user.uid, user.gid);
    return place;
  }
  const elsewhere = await mkdtemp(join(STATE, 'patchbay-cluster-'));
  await chown(elsewhere, user.uid, user.gid);
  await symlink(elsewhere, place);
  say(`the user that runs Postgres may not enter ${folder}: its data are in ${elsewhere}`);
  return elsewhere;
}

async function ownerOf(home, user) {
  const { uid, gid } = await stat(home);
  return uid === 0 ? user : { uid, gid };
}

/** Creates the data unless they are there. They get their name when they are whole. @returns the password */
async function createData({ bin, env, home, folder, owner }) {
  const passwordFile = join(folder, 'postgres-password');
  if (await exists(join(home, 'data'))) {
    try {
      return await readFile(passwordFile, 'utf8');
    } catch (error) {
      throw new PartFailure(
        NAME,
        `cannot read the password of its data (${error.message}); remove ${join(folder, NAME)} to begin with none`,
      );
    }
  }
  const password = randomBytes(18).toString('hex');
  const making = join(home, 'data.making');
  const secret = join(home, 'password.making');
  await rm(making, { recursive: true, force: true });
  await writeFile(secret, password, { mode: 0o600 });
  if (owner !== undefined) await chown(secret, owner.uid, owner.gid);
  const args = ['-D', making, '-U', ROLE, '-A', 'scram-sha-256', `--pwfile=${secret}`, '-E', 'UTF8', '--locale=C'];
  try {
    await run(join(bin, 'initdb'), args, { env, cwd: home, ...owner, timeout: READY_WITHIN_MS });
  } catch (error) {
    throw new PartFailure(NAME, `initdb failed: ${(error.stderr || error.message).trim().split('\n').at(-1)}`);
  } finally {
    await rm(secret, { force: true });
  }
  await writeFile(passwordFile, password, { mode: 0o600 });
  await rename(making, join(home, 'data'));
  return password;
}

/** Throws while the server does not take connections. @returns {Promise<true>} */
async function createDatabase(url) {
  // Not before the dependencies are installed.
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {}); // told by whoever waits for an answer
  try {
    await client.connect();
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE} template template0`);
    return true;
  } finally {
    await client.end();
  }
}

async function isOpenToAll(folder) {
  const { mode } = await stat(folder);
  if ((mode & 0o001) === 0) return false;
  const parent = dirname(folder);
  return parent === folder || isOpenToAll(parent);
}

async function exists(path) {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (error.code === 'ENOENT') return false;
    throw error;
  }
}
