// npm run cluster: three nodes, NATS and a Postgres on this machine, in the foreground. Ctrl-C stops everything.
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { banner } from './cluster/banner.mjs';
import { checkPorts, layOut } from './cluster/layout.mjs';
import { Part } from './cluster/part.mjs';
import { PartFailure } from './cluster/ready.mjs';
import { startNats } from './cluster/start-nats.mjs';
import { startNode } from './cluster/start-node.mjs';
import { startPostgres } from './cluster/start-postgres.mjs';
import { ensureBuilt } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';

const HELP = `npm run cluster -- [options]
  --nats 1|3         nats-servers (default 1)
  --restart          start a part that ends again, instead of ending everything
  --port-offset N    add N to every port
  --verbose          show everything that the parts write`;
/** On Ctrl-C npm passes the signal on a moment after the terminal did: signals this close together are one wish. */
const SAME_WISH_MS = 500;
const RESTART_AFTER_MS = 3_000;
const BROKER_STOP_MS = 5_000;
const DATABASE_STOP_MS = 20_000;
/** Beyond the time that calls in flight get. */
const NODE_CLOSING_MS = 15_000;

requireNode();
const options = readOptions();
process.stdout.on('error', () => {}); // a reader that went away is no reason to end
const started = performance.now();

/** What ends the cluster: undefined for a signal, else what is wrong. */
let end;
const ending = new Promise((resolveEnd) => {
  end = resolveEnd;
});
/** The live part of each name. @type {Map<string, Part>} */
const parts = new Map();
let isReady = false;
let isEnding = false;
void ending.then(() => (isEnding = true));
watchSignals();

await ensureInstalled();
await ensureBuilt();
const failure = await Promise.race([ending, run().then(() => ending)]).catch((error) => error);
isEnding = true;
if (failure === undefined) say('stopping');
else say(`${explain(failure)}${parts.size > 0 ? '; everything else is stopped' : ''}`);
await stopAll();
if (parts.size > 0) say('everything has stopped');
process.exit(failure === undefined ? 0 : 1);

async function run() {
  const { ensureNatsServer, ensurePostgres, enterableBin, postgresEnvironment, postgresUser } =
    await import('../packages/testkit/dist/index.js');
  const layout = layOut(options);
  await checkPorts(layout);
  // An explicit folder of data is for the cluster too.
  const folder = resolve(process.env.PATCHBAY_DATA_DIR || '.patchbay', 'cluster');
  await mkdir(join(folder, 'logs'), { recursive: true });
  const start = (part) => startPart({ ...part, logFile: join(folder, 'logs', `${part.name}.log`) });

  const natsCommand = await ensureNatsServer();
  const user = postgresUser();
  const bin = await enterableBin(await ensurePostgres(), user);
  const secret = () => randomBytes(18).toString('hex');
  const passwords = { node: secret(), routes: secret(), caller: 'caller', watcher: 'watcher' };
  const { port } = layout.postgres;
  const [, database] = await Promise.all([
    startNats({ command: natsCommand, servers: layout.nats, passwords, start }),
    startPostgres({ bin, env: postgresEnvironment(bin), user, folder, port, start, say }),
  ]);

  const servers = layout.nats.map((server) => `nats://node:${passwords.node}@127.0.0.1:${server.port}`);
  const shared = { PATCHBAY_NATS_URL: servers.join(','), PATCHBAY_DATABASE_URL: database.url };
  const nodeEnv = join(folder, 'node.env');
  const lines = Object.entries({ ...shared, PATCHBAY_HTTP_PORT: '0', PATCHBAY_METRICS_PORT: '0' });
  await writeFile(nodeEnv, lines.map(([name, value]) => `${name}=${value}\n`).join(''), { mode: 0o600 });
  await Promise.all(layout.nodes.map((node) => startNode({ node, shared, dataDir: join(folder, node.name), start })));

  const pids = new Map(await Promise.all([...parts].map(async ([name, part]) => [name, await part.pid])));
  isReady = true;
  const readyInMs = performance.now() - started;
  console.log(`\n${banner({ layout, pids, folder, nodeEnv, isRestarting: options.restart, readyInMs })}\n`);
}

function startPart(description) {
  const { name, isNews } = description;
  const show = (line) => console.log(`${name.padEnd(8)} | ${line}`);
  const part = new Part({ ...description, show, isNews: options.verbose ? () => true : isNews });
  parts.set(name, part);
  if (isEnding) part.kill(); // everything is being stopped, and this one was late
  void part.ended.then((reason) => {
    if (isEnding || part.isStopping) return;
    if (!options.restart || !isReady) {
      end(new PartFailure(name, `ended: ${reason}`));
      return;
    }
    say(`${name} ended: ${reason}; it is started again`);
    setTimeout(() => {
      if (!isEnding) startPart(description);
    }, RESTART_AFTER_MS);
  });
  return part;
}

/** The nodes first, for they finish what is in hand; then what they need. */
async function stopAll() {
  const seconds = (name, fallback) => Number(process.env[name] || fallback);
  const draining = seconds('PATCHBAY_DRAIN_SECONDS', 10) + seconds('PATCHBAY_DRAIN_DELAY_SECONDS', 0);
  const stop = (prefix, limitMs) =>
    Promise.all([...parts].filter(([name]) => name.startsWith(prefix)).map(([, part]) => part.stop(limitMs)));
  await stop('node-', draining * 1_000 + NODE_CLOSING_MS);
  await stop('nats-', BROKER_STOP_MS);
  await stop('postgres', DATABASE_STOP_MS);
}

function watchSignals() {
  let firstAt;
  const onSignal = () => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      end();
    } else if (performance.now() - firstAt > SAME_WISH_MS) {
      for (const part of parts.values()) part.kill();
      process.exit(1);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, onSignal);
}

/** One line. */
function explain(error) {
  return error.message.replaceAll(/\s*\n\s*/g, ' ').replace(/\.$/, '');
}

function say(text) {
  console.log(`cluster: ${text}`);
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        nats: { type: 'string', default: '1' },
        restart: { type: 'boolean', default: false },
        'port-offset': { type: 'string', default: '0' },
        verbose: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(HELP);
      process.exit(0);
    }
    const { restart, verbose } = values;
    if (!['1', '3'].includes(values.nats)) throw new Error(`--nats must be 1 or 3; got "${values.nats}"`);
    const portOffset = Number(values['port-offset']);
    if (!Number.isInteger(portOffset) || portOffset < -3_000 || portOffset > 50_000) {
      throw new Error(`--port-offset must be a whole number from -3000 to 50000; got "${values['port-offset']}"`);
    }
    return { natsServers: Number(values.nats), restart, verbose, portOffset };
  } catch (error) {
    console.error(`cluster: ${explain(error)}\n${HELP}`);
    process.exit(1);
  }
}
