// npm run bench: one run, one table. `npm run bench -- --seconds 1 --rounds 3 --agents 1000` for a quick look.
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';

requireNode();
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '5' },
    agents: { type: 'string', default: '10000' },
  },
});
await ensureInstalled();
await ensureBuilt();
const { measureThroughput } = await import('../test/bench/throughput.mjs');
const { measureManyAgents } = await import('../test/bench/many-agents.mjs');
const { report } = await import('../test/bench/report.mjs');

const folder = await mkdtemp(join(tmpdir(), 'patchbay-bench-'));
try {
  console.log(`Node ${process.version}, ${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}`);
  const rows = await measureThroughput({
    dataDir: join(folder, 'throughput'),
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    log: console.log,
  });
  console.log(`registering ${values.agents} agents`);
  const agents = await measureManyAgents({ dataDir: join(folder, 'agents'), count: Number(values.agents) });
  console.log(`\n${report(rows, agents)}`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
