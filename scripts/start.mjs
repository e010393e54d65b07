// npm start: installs and builds what is not up to date, then runs the product in this process (so that signals reach
// it without anything between). Arguments are passed on: `npm start -- config`.
import { ensureBuilt } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';

requireNode();
await ensureInstalled();
await ensureBuilt();
const { runCli } = await import('../services/patchbay/dist/cli.js');
await runCli(process.argv.slice(2));
