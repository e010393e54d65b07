// npm test: everything, with real servers. Arguments are passed on to vitest: `npm test -- packages/store`.
import { join } from 'node:path';
import { ensureBuilt } from './lib/build.mjs';
import { ensureServers } from './lib/ensure-servers.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';
import { ROOT } from './lib/root.mjs';
import { run } from './lib/run.mjs';

requireNode();
await ensureInstalled();
await ensureBuilt();

const { ensureNatsServer, ensurePostgres } = await import('../packages/testkit/dist/index.js');
await ensureServers({ 'nats-server': ensureNatsServer, Postgres: ensurePostgres });

const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
await run(process.execPath, [vitest, 'run', ...process.argv.slice(2)], { cwd: ROOT });
