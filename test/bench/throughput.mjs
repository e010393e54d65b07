import { join } from 'node:path';
import { median } from './median.mjs';
import { residentMb, Running, startLoadGenerator, startPatchbay, startServer } from './processes.mjs';
import { registerAgent } from './registrations.mjs';

const CONNECTIONS = [1, 32];
const WARM_UP_SECONDS = 2;
const SUBJECT = 'bare.agent';
/** 150 bytes, as a short message is. */
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: { role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }] } },
});

/**
 * Requests per second through the agent alone, proxies, and Patchbay in its ways to run. Rounds are interleaved and
 * medians taken, so that what else the machine does falls on all of them alike.
 * @param {object} options
 * @param {string} options.folder For data.
 * @param {import('./servers.mjs').BenchServers | undefined} options.servers NATS and Postgres; without them only what
 * needs none is measured.
 */
export async function measureThroughput({ folder, servers, rounds, seconds, log }) {
  const running = new Running();
  try {
    const agent = await running.add(startServer('servers/agent.mjs'));
    const agentUrl = `http://127.0.0.1:${agent.port}/`;
    const targets = [
      { name: 'agent alone', path: '/', port: agent.port, pids: [agent.pid] },
      ...(await startEmbedded(running, folder, agentUrl)),
      ...(servers === undefined ? [] : await startClustered(running, servers, folder, agentUrl)),
    ];
    const load = await running.add(startLoadGenerator());
    for (const { port, path } of targets) {
      await load.run({ port, path, body: BODY, connections: 32, seconds: WARM_UP_SECONDS });
    }
    const rows = [];
    for (const connections of CONNECTIONS) {
      log(`${connections} connection(s): ${rounds} rounds of ${seconds} s for each of ${targets.length}`);
      rows.push(...(await measure(load, targets, { connections, rounds, seconds })));
    }
    return rows;
  } finally {
    await running.stop();
  }
}

/** One process between the load and the agent. */
async function startEmbedded(running, folder, agentUrl) {
  const bare = await running.add(startServer('servers/bare-proxy.mjs', agentUrl));
  const proxy = await running.add(startServer('servers/http-proxy.mjs', agentUrl));
  const patchbay = await running.add(startPatchbay(join(folder, 'embedded')));
  await registerAgent(patchbay.url, 'bench-agent', agentUrl);
  return [
    { name: 'bare proxy', path: '/', port: bare.port, pids: [bare.pid] },
    { name: 'http-proxy', path: '/', port: proxy.port, pids: [proxy.pid] },
    { name: 'Patchbay', path: '/a2a/bench-agent', port: patchbay.port, pids: [patchbay.pid] },
  ];
}

/**
 * A process in front, NATS, and a process behind it; and a node that has both halves itself. Two nats-servers: a node
 * that joins the queue group of the others would take half of their calls.
 */
async function startClustered(running, servers, folder, agentUrl) {
  const nats = await running.add(servers.startNats());
  const responder = await running.add(startServer('servers/nats-responder.mjs', nats.url, SUBJECT, agentUrl));
  const bare = (way) => running.add(startServer('servers/nats-proxy.mjs', nats.url, SUBJECT, way));
  const [requesting, multiplexing] = [await bare('request'), await bare('multiplexed')];

  const forced = { PATCHBAY_NATS_URL: nats.url, PATCHBAY_LOCAL_FIRST: 'false' };
  const services = 'registry,liveness,dispatch';
  const behind = await running.add(
    startPatchbay(join(folder, 'behind'), {
      ...forced,
      PATCHBAY_DATABASE_URL: await servers.createDatabase(),
      PATCHBAY_SERVICES: services,
    }),
  );
  const front = await running.add(startPatchbay(join(folder, 'front'), { ...forced, PATCHBAY_SERVICES: 'gateway' }));
  await registerAgent(front.url, 'bench-agent', agentUrl);

  const ownNats = await running.add(servers.startNats());
  const local = await running.add(
    startPatchbay(join(folder, 'local'), {
      PATCHBAY_NATS_URL: ownNats.url,
      PATCHBAY_DATABASE_URL: await servers.createDatabase(),
    }),
  );
  await registerAgent(local.url, 'bench-agent', agentUrl);
  const path = '/a2a/bench-agent';
  return [
    { name: 'NATS, nc.request()', path: '/', port: requesting.port, pids: [requesting.pid, responder.pid] },
    { name: 'NATS, multiplexed', path: '/', port: multiplexing.port, pids: [multiplexing.pid, responder.pid] },
    { name: 'Patchbay, bus forced', path, port: front.port, pids: [front.pid, behind.pid] },
    { name: 'Patchbay, local-first', path, port: local.port, pids: [local.pid] },
  ];
}

async function measure(load, targets, { connections, rounds, seconds }) {
  const samples = new Map(targets.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    // Another one starts each round, so that none always runs after the same.
    for (let index = 0; index < targets.length; index += 1) {
      const { name, port, path } = targets[(round + index) % targets.length];
      const result = await load.run({ port, path, body: BODY, connections, seconds });
      if (result.errors > 0) throw new Error(`${name}: ${result.errors} of ${result.requests} calls failed`);
      if (result.requests === 0) throw new Error(`${name}: no call was answered`);
      samples.get(name).push(result);
    }
  }
  const rows = [];
  for (const { name, pids } of targets) {
    const results = samples.get(name);
    const rates = results.map((result) => result.requests / result.seconds);
    rows.push({
      name,
      connections,
      /** Of each round. */
      rates,
      perSecond: median(rates),
      p50Ms: median(results.map((result) => result.p50Ms)),
      p99Ms: median(results.map((result) => result.p99Ms)),
      rssMb: sum(await Promise.all(pids.map(residentMb))),
    });
  }
  return rows;
}

function sum(values) {
  return values.includes(undefined) ? undefined : values.reduce((total, value) => total + value, 0);
}
