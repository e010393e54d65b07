import { residentMb, startLoadGenerator, startPatchbay, startServer } from './processes.mjs';

const CONNECTIONS = [1, 32];
const WARM_UP_SECONDS = 2;
/** 150 bytes, as a short message is. */
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: { role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }] } },
});

/**
 * Requests per second through the agent alone, a bare proxy, http-proxy and Patchbay. Rounds are interleaved and
 * medians taken, so that what else the machine does falls on all of them alike.
 */
export async function measureThroughput({ dataDir, rounds, seconds, log }) {
  const agent = await startServer('servers/agent.mjs');
  const agentUrl = `http://127.0.0.1:${agent.port}/`;
  const bare = await startServer('servers/bare-proxy.mjs', agentUrl);
  const proxy = await startServer('servers/http-proxy.mjs', agentUrl);
  const patchbay = await startPatchbay(dataDir);
  const load = startLoadGenerator();
  try {
    await register(patchbay.url, agentUrl);
    const targets = [
      { name: 'agent alone', port: agent.port, path: '/', pid: agent.pid },
      { name: 'bare proxy', port: bare.port, path: '/', pid: bare.pid },
      { name: 'http-proxy', port: proxy.port, path: '/', pid: proxy.pid },
      { name: 'Patchbay', port: patchbay.port, path: '/a2a/bench-agent', pid: patchbay.pid },
    ];
    for (const { port, path } of targets) {
      await load.run({ port, path, body: BODY, connections: 32, seconds: WARM_UP_SECONDS });
    }
    const rows = [];
    for (const connections of CONNECTIONS) {
      log(`${connections} connection(s): ${rounds} rounds of ${seconds} s each`);
      rows.push(...(await measure(load, targets, { connections, rounds, seconds })));
    }
    return rows;
  } finally {
    for (const process of [load, patchbay, proxy, bare, agent]) await process.stop();
  }
}

async function measure(load, targets, { connections, rounds, seconds }) {
  const samples = new Map(targets.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    // Another one starts each round, so that none always runs after the same.
    for (let index = 0; index < targets.length; index += 1) {
      const { name, port, path } = targets[(round + index) % targets.length];
      const result = await load.run({ port, path, body: BODY, connections, seconds });
      if (result.errors > 0) throw new Error(`${name}: ${result.errors} of ${result.requests} calls failed`);
      samples.get(name).push(result);
    }
  }
  const rows = [];
  for (const { name, pid } of targets) {
    const results = samples.get(name);
    rows.push({
      name,
      connections,
      perSecond: median(results.map((result) => result.requests / result.seconds)),
      p50Ms: median(results.map((result) => result.p50Ms)),
      p99Ms: median(results.map((result) => result.p99Ms)),
      rssMb: await residentMb(pid),
    });
  }
  return rows;
}

async function register(url, agentUrl) {
  const response = await fetch(`${url}/agents/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agent_id: 'bench-agent', name: 'Bench', url: agentUrl }),
  });
  if (response.status !== 200) throw new Error(`registering failed: HTTP ${response.status} ${await response.text()}`);
  await response.body?.cancel();
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
