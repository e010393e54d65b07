import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, PatchbayCluster, PatchbayProcess, startScriptedAgent } from '@patchbay/testkit';
import type { ScriptedAgent } from '@patchbay/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listsAll } from '../support/agent-list.js';
import { HEALED_AFTER_MS } from '../support/cluster-load.js';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { callsTo, heartbeatsAt, listsAt, registrationsAt } from '../support/load-callers.js';
import type { Front } from '../support/load-callers.js';
import { LoadRecorder } from '../support/load-recorder.js';
import { heartbeat, tryRegister } from '../support/registry-calls.js';

const ECHO_IDS = Array.from({ length: 5 }, (_, index) => `echo-${index}`);

let agent: ScriptedAgent;
let slowAgent: ScriptedAgent;
let cluster: PatchbayCluster;
/** A front without anything else: all that it does needs another process. */
let gateway: PatchbayProcess;
const acknowledged: string[] = [...ECHO_IDS, 'slow'];
let load: LoadRecorder;
let rounds = 0;

beforeAll(async () => {
  agent = await startScriptedAgent({ kind: 'echo' });
  slowAgent = await startScriptedAgent({ kind: 'slow', ms: 20_000 });
  cluster = await PatchbayCluster.start();
  const { PATCHBAY_NATS_URL = '' } = cluster.envOf(0);
  gateway = await PatchbayProcess.start({
    env: { PATCHBAY_NATS_URL, PATCHBAY_NODE_ID: 'gateway-0', PATCHBAY_SERVICES: 'gateway' },
  });
  for (const agentId of ECHO_IDS) await registerAgent(gateway, agentId, agent.url);
  await registerAgent(gateway, 'slow', slowAgent.url);
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await cluster.stop();
  await agent[Symbol.asyncDispose]();
  await slowAgent[Symbol.asyncDispose]();
});

beforeEach(async () => {
  rounds += 1;
  load = new LoadRecorder();
  const fronts: Front[] = [...cluster.nodes, gateway];
  load.add(
    fronts.flatMap((front) => [callsTo(front, ECHO_IDS), callsTo(front, ECHO_IDS), listsAt(front)]),
    50,
  );
  load.add(
    fronts.flatMap((front, index) => [
      heartbeatsAt(front, ECHO_IDS),
      registrationsAt(front, `round-${rounds}-${index}`, acknowledged, agent.url),
    ]),
    100,
  );
  await sleep(1_000);
});
afterEach(() => load.stop());

async function readyz(node: Front): Promise<{ status: number; bus: unknown }> {
  const response = await fetch(`${node.url}/readyz`, { signal: AbortSignal.timeout(2_000) });
  const { conditions } = (await response.json()) as { conditions: { bus?: { met?: unknown } } };
  return { status: response.status, bus: conditions.bus?.met };
}

/** Every node is connected, and a registration through any of them reaches all. */
async function allAreConnected(): Promise<void> {
  for (const node of [...cluster.nodes, gateway]) {
    await eventually(async () => (await readyz(node)).bus === true, {
      withinMs: 10_000,
      what: `${node.url} connected`,
    });
  }
  const names = [...cluster.nodes, gateway].map((node, index) => ({ node, agentId: `after-${rounds}-${index}` }));
  for (const { node, agentId } of names) {
    await eventually(async () => (await tryRegister(node, agentId, agent.url)).status === 200, { withinMs: 10_000 });
    acknowledged.push(agentId);
  }
  for (const node of [...cluster.nodes, gateway]) await listsAll(node, acknowledged);
}

/** Attempts through the nodes that have a dispatch of their own. */
function localFailures(doing: string): unknown[] {
  return cluster.nodes.flatMap((front) => load.failures({ doing, front: front.url }));
}

describe('one of three nats-servers', () => {
  it.each(['killed and brought back', 'stopped and resumed'])('is %s', async (what) => {
    const server = cluster.nats[rounds % 3];
    if (server === undefined) throw new Error('there is no such server');
    const brokenMs = performance.now();
    if (what.startsWith('killed')) await server.kill();
    else server.pause();
    await sleep(HEALED_AFTER_MS + 2_000);
    if (what.startsWith('killed')) await server.start();
    else server.resume();
    await sleep(2_000);
    await load.stop();

    expect(load.scandals()).toEqual([]);
    expect(localFailures('call')).toEqual([]);
    expect(load.failures({ doing: 'list' })).toEqual([]);
    expect(load.failures({ fromMs: brokenMs + HEALED_AFTER_MS })).toEqual([]);
    await allAreConnected();
  });
});

describe('all of NATS', () => {
  it('is stopped for a while and resumed', async () => {
    const pausedMs = performance.now();
    for (const server of cluster.nats) server.pause();
    await sleep(HEALED_AFTER_MS);
    for (const node of [...cluster.nodes, gateway]) expect(await readyz(node)).toEqual({ status: 200, bus: false });
    await sleep(pausedMs + 10_000 - performance.now());
    for (const server of cluster.nats) server.resume();
    const resumedMs = performance.now();
    await allAreConnected();
    const connectedMs = performance.now();
    await sleep(2_000);
    await load.stop();

    expect(load.scandals()).toEqual([]);
    expect(localFailures('call')).toEqual([]);
    expect(load.failures({ doing: 'list' })).toEqual([]);
    // What needs another process says so, and at once, for as long as there is none.
    const known = { fromMs: pausedMs + HEALED_AFTER_MS, toMs: resumedMs - 1_500 };
    const across = [
      ...load.select({ ...known, doing: 'call', front: gateway.url }),
      ...load.select({ ...known, doing: 'register' }),
      ...load.select({ ...known, doing: 'heartbeat' }),
    ];
    expect(across.length).toBeGreaterThan(50);
    const words = new Set(across.map(({ outcome }) => ('code' in outcome ? outcome.code : outcome.kind)));
    expect(words).toEqual(new Set(['BUS_UNAVAILABLE', '503']));
    expect(across.filter(({ startedMs, endedMs }) => endedMs - startedMs > 1_500)).toEqual([]);
    expect(load.failures({ fromMs: connectedMs })).toEqual([]);
  });

  it('is killed: what is in flight ends at once, and what was said to be done is there when it is back', async () => {
    await load.stop();
    const inFlight = Array.from({ length: 5 }, (_, n) => callAgent(gateway, 'slow', 'message/send', { n }));
    await eventually(() => slowAgent.inHand === inFlight.length);
    await Promise.all(cluster.nats.map((server) => server.kill()));
    const killedMs = performance.now();
    for (const answer of await Promise.all(inFlight)) expect(answer.error?.code).toBe(-32603);
    // A second by design; without the link's own word it would be the timeout of the calls, 30 s.
    expect(performance.now() - killedMs).toBeLessThan(3_000);
    // Nobody waits for the agent's answers any more.
    await eventually(() => slowAgent.inHand === 0);

    const refused = await fetch(`${gateway.url}/a2a/echo-0`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: '{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{}}',
    });
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({
      id: 7,
      error: { code: -32603, data: [{ reason: 'BUS_UNAVAILABLE' }] },
    });
    expect((await callAgent(gateway, 'echo-0')).error?.code).toBe(-32603);
    for (const node of cluster.nodes) {
      expect(await callAgent(node, 'echo-0')).toHaveProperty('result');
      expect(await readyz(node)).toEqual({ status: 200, bus: false });
      expect((await tryRegister(node, 'refused', agent.url)).status).toBe(503);
      expect((await heartbeat(node, 'echo-0')).status).toBe(503);
      // Nobody can say whether it exists.
      expect((await callAgent(node, 'nobody-knows')).error?.code).toBe(-32603);
    }
    await Promise.all(cluster.nats.map((server) => server.start()));
    await allAreConnected();
    for (const node of [...cluster.nodes, gateway]) {
      expect(await callAgent(node, 'echo-0')).toHaveProperty('result');
      expect((await callAgent(node, 'refused')).error?.code).toBe(-32002);
    }
  });
});
