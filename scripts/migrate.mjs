// npm run migrate: brings the database up to date and ends.
import { ensureBuilt } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';

requireNode();
await ensureInstalled();
await ensureBuilt();
const { runCli } = await import('../services/patchbay/dist/cli.js');
await runCli(['migrate', ...process.argv.slice(2)]);
