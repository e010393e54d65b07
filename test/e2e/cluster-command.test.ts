import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, startScriptedAgent } from '@patchbay/testkit';
import type { ScriptedAgent } from '@patchbay/testkit';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Building when something changed, and creating the database, may take long on a busy machine. */
const PATIENCE_MS = 120_000;
/** Below the ports that systems hand out, and away from those of a cluster that somebody runs. */
const OFFSET = 12_000 + Math.floor(Math.random() * 10) * 1_000;
const node = (number: number): { url: string } => ({ url: `http://localhost:${9190 + number + OFFSET}` });

const groups: number[] = [];
let dataDir: string;
let agent: ScriptedAgent;
beforeAll(async () => {
  agent = await startScriptedAgent({ kind: 'echo' });
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-cluster-command-'));
  // As root another user runs Postgres there.
  await chmod(dataDir, 0o755);
});
afterEach(() => {
  for (const group of groups.splice(0)) {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  }
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 500 });
});

/** Runs `npm run cluster` in a process group of its own, as a terminal does. */
function start(...args: string[]) {
  const child = spawn('npm', ['run', 'cluster', '--', '--port-offset', String(OFFSET), ...args], {
    cwd: ROOT,
    detached: true,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PATCHBAY_DATA_DIR: dataDir },
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
  const run = {
    pid,
    ended,
    output: () => output,
    pidOf: (part: string) => Number(new RegExp(`^ {2}${part} .*pid (\\d+)$`, 'm').exec(output)?.[1]),
    untilReady: async () => {
      await eventually(() => output.includes('Three nodes are ready in') || child.exitCode !== null, {
        withinMs: PATIENCE_MS - 20_000,
      });
      expect(output).toContain('Three nodes are ready in');
    },
  };
  return run;
}

/** The line with which everything ends because of one part. */
function lastFailure(output: string): string | undefined {
  return output.split('\n').find((line) => line.startsWith('cluster: ') && line.includes('everything else is stopped'));
}

async function isGone(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
    // A process that nobody has waited for yet has no command line.
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => 'there')) === '';
  } catch {
    return true;
  }
}

it('npm run cluster: three nodes that share a registry, Ctrl-C, and the data are there again', async () => {
  const first = start();
  await first.untilReady();
  await registerAgent(node(1), 'kept', agent.url);
  expect((await callAgent(node(2), 'kept')).result).toBeDefined();
  expect((await callAgent(node(3), 'kept')).result).toBeDefined();
  const pids = ['node-1', 'node-2', 'node-3', 'nats-1', 'postgres'].map((part) => first.pidOf(part));
  // Every process of the terminal's group gets it, and npm passes its own on.
  process.kill(-first.pid, 'SIGINT');
  expect(await first.ended).toBe(0);
  expect(first.output()).toContain('everything has stopped');
  for (const pid of pids) expect(await isGone(pid)).toBe(true);

  const second = start('--nats', '3');
  await second.untilReady();
  expect((await callAgent(node(3), 'kept')).result).toBeDefined();
  process.kill(-second.pid, 'SIGINT');
  expect(await second.ended).toBe(0);
}, 240_000);

it('a part that ends is named in one line, and everything else is stopped', { timeout: PATIENCE_MS }, async () => {
  const run = start();
  await run.untilReady();
  const pids = ['node-1', 'node-3', 'nats-1', 'postgres'].map((part) => run.pidOf(part));
  process.kill(run.pidOf('node-2'), 'SIGKILL');
  expect(await run.ended).toBe(1);
  expect(lastFailure(run.output())).toBe('cluster: node-2: ended: killed by signal 9; everything else is stopped');
  for (const pid of pids) expect(await isGone(pid)).toBe(true);
});

it('with --restart a part that ends is started again; kill -9 of the script leaves nothing', async () => {
  const run = start('--restart');
  await run.untilReady();
  process.kill(run.pidOf('node-2'), 'SIGKILL');
  await eventually(async () => (await callAgent(node(2), 'kept')).result, {
    withinMs: 30_000,
    what: 'an answer of the node that was started again',
  });
  expect(run.output()).toContain('cluster: node-2 ended: killed by signal 9; it is started again');
  const pids = ['node-1', 'node-3', 'nats-1', 'postgres'].map((part) => run.pidOf(part));
  process.kill(-run.pid, 'SIGKILL');
  for (const pid of pids) await eventually(() => isGone(pid), { withinMs: 30_000, what: `the end of ${pid}` });
}, 240_000);

it('a port in use is named, and nothing is started', { timeout: PATIENCE_MS }, async () => {
  await using _blocker = await startScriptedAgent({ kind: 'echo' }, { port: 5532 + OFFSET });
  const run = start();
  expect(await run.ended).toBe(1);
  expect(run.output()).toContain(`cluster: postgres: port ${5532 + OFFSET} (database) is in use`);
});

it.each([
  [['--nats', '2'], '--nats must be 1 or 3; got "2"'],
  [['--port-offset', 'x'], '--port-offset must be a whole number'],
  [['--nodes', '5'], "Unknown option '--nodes'"],
])('%j is refused', { timeout: PATIENCE_MS }, async (args, message) => {
  const run = start(...args);
  expect(await run.ended).toBe(1);
  expect(run.output()).toContain(`cluster: ${message}`);
});
