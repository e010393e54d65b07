import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, freePort } from '@patchbay/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Creating the database, and building when something changed, may take long on a busy machine. */
const PATIENCE_MS = 120_000;

const groups: number[] = [];
let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-npm-'));
});
afterEach(async () => {
  for (const group of groups.splice(0)) {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  }
  await rm(dataDir, { recursive: true, force: true });
});

/** Runs npm in a process group of its own, as a terminal does. */
async function npm(...args: string[]) {
  const port = await freePort();
  const child = spawn('npm', args, {
    cwd: ROOT,
    detached: true,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      PATCHBAY_HTTP_PORT: String(port),
      PATCHBAY_METRICS_PORT: '0',
      PATCHBAY_DATA_DIR: dataDir,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const pid = child.pid ?? 0;
  groups.push(pid);
  return { child, pid, ended, output: () => output, url: `http://localhost:${port}` };
}

async function untilReady({ child, output }: Awaited<ReturnType<typeof npm>>): Promise<void> {
  await eventually(() => output().includes('is ready in') || child.exitCode !== null, {
    withinMs: PATIENCE_MS - 10_000,
  });
  expect(output()).toContain('is ready in');
}

it('npm start runs the product, and Ctrl-C drains it', { timeout: PATIENCE_MS }, async () => {
  const run = await npm('start');
  await untilReady(run);
  expect((await fetch(`${run.url}/readyz`)).status).toBe(200);
  // Every process of the group gets it, and npm passes its own on.
  process.kill(-run.pid, 'SIGINT');
  expect(await run.ended).toBe(0);
  expect(run.output()).toContain('"is_clean":true');
});

it('a SIGTERM to npm alone drains it too', { timeout: PATIENCE_MS }, async () => {
  const run = await npm('start');
  await untilReady(run);
  process.kill(run.pid, 'SIGTERM');
  expect(await run.ended).toBe(0);
  expect(run.output()).toContain('"is_clean":true');
});

it('npm start passes arguments on', { timeout: PATIENCE_MS }, async () => {
  const run = await npm('start', '--', 'config');
  expect(await run.ended).toBe(0);
  expect(run.output()).toContain(`PATCHBAY_HTTP_PORT`);
});

it(
  'npm run demo shows agents that register, are called and stream, and leaves by itself',
  { timeout: PATIENCE_MS },
  async () => {
    const run = await npm('run', 'demo');
    expect(await run.ended).toBe(0);
    expect(run.output()).toContain('echo-agent answers: "hello, patchbay"');
    expect(run.output()).toContain('event 5: completed 5 of 5');
    expect(run.output()).toContain('done: both agents have deregistered and left');
  },
);
