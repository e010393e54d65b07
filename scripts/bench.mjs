// npm run bench: one run, one table. `npm run bench -- registrations` for one part, `npm run bench -- --seconds 1
// --rounds 3 --agents 1000` for a quick look.
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';

const HELP = `npm run bench -- [part …] [options]
parts (default: calls, registrations and agents)
  calls             calls through proxies and Patchbay, on one node and over NATS
  embedded          of these, what needs no NATS and no Postgres
  registrations     what they cost on three nodes, and how soon all have applied them
  agents            one node with many agents, and its restart
options
  --seconds 2 --rounds 5   of the calls
  --agents 10000           of the last part`;

requireNode();
const { parts, seconds, rounds, count } = readOptions();
await ensureInstalled();
await ensureBuilt();
const { measureThroughput } = await import('../test/bench/throughput.mjs');
const { measureThreeNodes } = await import('../test/bench/three-nodes.mjs');
const { measureManyAgents } = await import('../test/bench/many-agents.mjs');
const { BenchServers } = await import('../test/bench/servers.mjs');
const { reportManyAgents, reportThreeNodes, reportThroughput } = await import('../test/bench/report.mjs');

const folder = await mkdtemp(join(tmpdir(), 'patchbay-bench-'));
const needsServers = parts.has('calls') || parts.has('registrations');
const reports = [];
let servers;
try {
  console.log(`Node ${process.version}, ${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}`);
  if (needsServers) servers = await BenchServers.start(folder);
  if (parts.has('calls') || parts.has('embedded')) {
    const calls = { folder: join(folder, 'calls'), rounds, seconds, log: console.log };
    const used = parts.has('calls') ? servers : undefined;
    reports.push(reportThroughput(await measureThroughput({ ...calls, servers: used })));
  }
  if (parts.has('registrations')) {
    const nodes = { folder: join(folder, 'nodes'), servers, log: console.log };
    reports.push(reportThreeNodes(await measureThreeNodes(nodes)));
  }
  if (parts.has('agents')) {
    console.log(`registering ${count} agents`);
    reports.push(reportManyAgents(await measureManyAgents({ dataDir: join(folder, 'agents'), count })));
  }
  console.log(`\n${reports.join('\n\n')}`);
} finally {
  await servers?.stop();
  await rm(folder, { recursive: true, force: true });
}

function readOptions() {
  const KNOWN = ['calls', 'embedded', 'registrations', 'agents'];
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        seconds: { type: 'string', default: '2' },
        rounds: { type: 'string', default: '5' },
        agents: { type: 'string', default: '10000' },
        help: { type: 'boolean', default: false },
      },
    });
    const unknown = positionals.find((part) => !KNOWN.includes(part));
    if (unknown !== undefined) throw new Error(`there is no part "${unknown}"`);
    for (const [name, value] of Object.entries(values)) {
      if (name !== 'help' && !(Number(value) > 0)) throw new Error(`--${name} must be a number over 0; got "${value}"`);
    }
    if (values.help) {
      console.log(HELP);
      process.exit(0);
    }
    return {
      parts: new Set(positionals.length === 0 ? KNOWN.filter((part) => part !== 'embedded') : positionals),
      seconds: Number(values.seconds),
      rounds: Number(values.rounds),
      count: Number(values.agents),
    };
  } catch (error) {
    console.error(`bench: ${error.message}\n${HELP}`);
    process.exit(1);
  }
}
