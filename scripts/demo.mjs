// npm run demo: two agents register at a gateway (the one that runs, else one of its own), stay alive, are called and
// streamed from, and leave.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { ensureBuilt } from './lib/build.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { requireNode } from './lib/node-version.mjs';
import { ROOT } from './lib/root.mjs';

const PATIENCE_MS = 30_000;
const PORT = process.env.PATCHBAY_HTTP_PORT || process.env.KUBEMQ_A2A_PORT || '9090';
const GATEWAY = `http://localhost:${PORT}`;

requireNode();
await ensureInstalled();
await ensureBuilt();

const cleanups = [];
try {
  await findGateway();
  await startAgent('echo-agent');
  await startAgent('streaming-agent');
  await listAgents();
  await beat('echo-agent');
  await call('echo-agent', 'hello, patchbay');
  await stream('streaming-agent');
  process.exitCode = 0;
} catch (error) {
  console.error(`demo: ${error.message}`);
  process.exitCode = 1;
}
for (const cleanup of cleanups.toReversed()) await cleanup();
if (process.exitCode === 0) say('done: both agents have deregistered and left');

/** Uses the gateway that runs, or starts one that leaves nothing behind. */
async function findGateway() {
  if (await isPatchbay()) {
    say(`using the gateway at ${GATEWAY}`);
    return;
  }
  say('no gateway runs; starting one (the first moments create its database)');
  const dataDir = await mkdtemp(join(tmpdir(), 'patchbay-demo-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  const env = { ...process.env, PATCHBAY_DATA_DIR: dataDir, PATCHBAY_HTTP_PORT: PORT, PATCHBAY_LOG_LEVEL: 'error' };
  const child = start(join('services', 'patchbay', 'dist', 'main.js'), env, 'SIGTERM');
  child.stdout.resume();
  await until(() => isPatchbay(), child, 'the gateway');
  say(`the gateway is ready at ${GATEWAY}`);
}

async function isPatchbay() {
  try {
    const response = await fetch(`${GATEWAY}/readyz`, { signal: AbortSignal.timeout(1_000) });
    const report = await response.json();
    return response.status === 200 && report.ready === true;
  } catch {
    return false;
  }
}

async function startAgent(name) {
  const env = { ...process.env, GATEWAY_URL: GATEWAY, PORT: '0' };
  const child = start(join('examples', 'dist', `${name}.js`), env, 'SIGINT');
  const [line] = await once(createInterface(child.stdout), 'line', { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!line.includes('HTTP 200')) throw new Error(`${name} was not registered: ${line}`);
  say(`${name} listens on ${JSON.parse(line.slice(line.indexOf('{'))).url} and has registered itself`);
}

async function listAgents() {
  const agents = await (await fetch(`${GATEWAY}/agents`)).json();
  say(`GET /agents lists ${agents.map((agent) => agent.agent_id).join(', ')}`);
}

async function beat(agentId) {
  const reply = await (await post('/agents/heartbeat', { agent_id: agentId })).json();
  say(`heartbeat of ${agentId}: last seen ${reply.last_seen}`);
}

async function call(agentId, text) {
  say(`POST /a2a/${agentId}  message/send "${text}"`);
  const { result, error } = await (await post(`/a2a/${agentId}`, rpc('message/send', text))).json();
  if (error !== undefined) throw new Error(`the call failed: ${error.message}`);
  say(`  ${agentId} answers: "${result.parts[0].text}"`);
}

async function stream(agentId) {
  say(`POST /a2a/${agentId}  message/stream`);
  const response = await post(`/a2a/${agentId}`, rpc('message/stream', 'count'));
  let events = 0;
  for await (const line of createInterface(Readable.fromWeb(response.body))) {
    if (!line.startsWith('data: ')) continue;
    const { result, error } = JSON.parse(line.slice('data: '.length));
    if (error !== undefined) throw new Error(`the stream broke: ${error.message}`);
    events += 1;
    say(`  event ${events}: ${result.status.state} ${result.metadata.count} of ${result.metadata.total}`);
  }
  if (events !== 5) throw new Error(`the stream had ${events} events instead of 5`);
}

function rpc(method, text) {
  const message = { role: 'user', messageId: 'demo-1', parts: [{ kind: 'text', text }] };
  return { jsonrpc: '2.0', id: 1, method, params: { message } };
}

function post(path, body) {
  return fetch(GATEWAY + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
}

/** Starts a Node program that is ended with `signal` when the demo is over. */
function start(file, env, signal) {
  const child = spawn(process.execPath, [join(ROOT, file)], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  cleanups.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit', { signal: AbortSignal.timeout(PATIENCE_MS) });
  });
  return child;
}

async function until(condition, child, what) {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (child.exitCode !== null) throw new Error(`${what} ended with exit code ${child.exitCode}`);
    if (performance.now() > giveUpAt) throw new Error(`${what} was not ready within ${PATIENCE_MS / 1_000} s`);
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}

function say(text) {
  console.log(`demo: ${text}`);
}
