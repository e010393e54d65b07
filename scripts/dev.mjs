// npm run dev: builds and starts the product, and again whenever a source file changes.
import { spawn } from 'node:child_process';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { build } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';
import { ROOT } from './lib/root.mjs';

const QUIET_MS = 150;
const MAIN = join(ROOT, 'services', 'patchbay', 'dist', 'main.js');

requireNode();
await ensureInstalled();

let product;
let isBuilding = false;
let isStale = false;
let isEnding = false;

async function rebuild() {
  if (isBuilding) {
    isStale = true;
    return;
  }
  isBuilding = true;
  do {
    isStale = false;
    if (await build()) await restart();
  } while (isStale);
  isBuilding = false;
}

async function restart() {
  await stop();
  if (isEnding) return;
  const child = spawn(process.execPath, ['--enable-source-maps', MAIN, ...process.argv.slice(2)], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  child.once('exit', (code) => {
    if (product !== child) return;
    product = undefined;
    if (!isEnding && code !== 0) console.log('Waiting for a change …');
  });
  product = child;
}

async function stop() {
  if (product === undefined) return;
  const child = product;
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  child.kill('SIGTERM');
  await ended;
}

let timer;
for (const folder of ['packages', 'services']) {
  watch(join(ROOT, folder), { recursive: true }, (_event, file) => {
    if (file === null || !/[/\\]src[/\\].*\.ts$/.test(file) || file.endsWith('.test.ts')) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      console.log(`${join(folder, file)} changed`);
      void rebuild();
    }, QUIET_MS);
  });
}
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    if (isEnding) return;
    isEnding = true;
    clearTimeout(timer);
    void stop().then(() => process.exit(0));
  });
}
await rebuild();
