import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAgentIds, listsAll } from '../support/agent-list.js';
import { expectHealed, HEALED_AFTER_MS, isAtFullRate, startSteadyLoad } from '../support/cluster-load.js';
import type { SteadyCalls } from '../support/cluster-load.js';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { heartbeatsAt, registrationsAt } from '../support/load-callers.js';

const PAUSE_MS = 10_000;
const ECHO_IDS = Array.from({ length: 10 }, (_, index) => `echo-${index}`);
const LEAVING_IDS = Array.from({ length: 40 }, (_, index) => `leaving-${index}`);
const ALL = [0, 1, 2];

let agent: ScriptedAgent;
let cluster: PatchbayCluster;
/** Every registration that was answered 200. */
const acknowledged: string[] = [];

beforeAll(async () => {
  agent = await startScriptedAgent({ kind: 'echo' });
  // So that one node's callers are served by all: with local-first a front would not notice that another one dies.
  cluster = await PatchbayCluster.start({ env: { PATCHBAY_LOCAL_FIRST: 'false' } });
  await Promise.all([...ECHO_IDS, ...LEAVING_IDS].map((agentId) => registerAgent(nodeAt(0), agentId, agent.url)));
  acknowledged.push(...ECHO_IDS, ...LEAVING_IDS);
});
afterAll(async () => {
  await cluster.stop();
  await agent[Symbol.asyncDispose]();
});

function nodeAt(index: number): PatchbayProcess {
  const node = cluster.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

/** Calls, heartbeats and registrations through the nodes other than `victim`. */
function startLoadBeside(victim: number, name: string): Promise<SteadyCalls> {
  const fronts = ALL.filter((index) => index !== victim).map(nodeAt);
  const beside = fronts.flatMap((front, index) => [
    heartbeatsAt(front, ECHO_IDS),
    registrationsAt(front, `${name}-${index}`, acknowledged, agent.url),
  ]);
  return startSteadyLoad({ fronts, agentIds: ECHO_IDS, beside });
}

async function deregister(node: PatchbayProcess, agentId: string): Promise<number> {
  const response = await fetch(`${node.url}/agents/${agentId}`, {
    method: 'DELETE',
    signal: AbortSignal.timeout(11_000),
  });
  await response.body?.cancel();
  return response.status;
}

describe('under load through the other nodes', () => {
  it.each(ALL)('node %i is killed and comes back', async (victim) => {
    const calls = await startLoadBeside(victim, `kill-${victim}`);
    await using load = calls.load;
    const killedMs = performance.now();
    await nodeAt(victim).stop('SIGKILL');
    await sleep(HEALED_AFTER_MS + 1_000);
    await isAtFullRate(calls);
    const startedMs = performance.now();
    await cluster.startNode(victim);
    const backMs = performance.now();
    await sleep(1_500);
    await isAtFullRate(calls);
    await load.stop();

    expectHealed(load, { hurtMs: killedMs, startedMs, backMs });
    for (const index of ALL) await listsAll(nodeAt(index), acknowledged);
    // The one that came back serves too.
    for (const agentId of ECHO_IDS) expect(await callAgent(nodeAt(victim), agentId)).toHaveProperty('result');
  });

  it('a node is stopped for a while and goes on', async () => {
    const calls = await startLoadBeside(1, 'pause');
    await using load = calls.load;
    const pausedMs = performance.now();
    nodeAt(1).pause();
    // Some of these were given to the node that stands still. Who was told so registers again.
    const left = await Promise.all(LEAVING_IDS.map(async (agentId) => deregister(nodeAt(0), agentId)));
    const unsure = LEAVING_IDS.filter((_, index) => left[index] === 503);
    expect(left.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(unsure.length).toBeGreaterThan(0);
    await eventually(() => performance.now() > pausedMs + HEALED_AFTER_MS, { withinMs: 10_000 });
    await Promise.all(unsure.map((agentId) => registerAgent(nodeAt(2), agentId, agent.url)));
    await sleep(pausedMs + PAUSE_MS - performance.now());
    await isAtFullRate(calls);
    nodeAt(1).resume();
    await sleep(2_000);
    await isAtFullRate(calls);
    await load.stop();

    expect(load.scandals()).toEqual([]);
    expect(load.failures({ fromMs: pausedMs + HEALED_AFTER_MS })).toEqual([]);
    const stayed = acknowledged.filter((agentId) => !LEAVING_IDS.includes(agentId) || unsure.includes(agentId));
    for (const index of ALL) {
      await listsAll(nodeAt(index), stayed);
      const listed = new Set(await listAgentIds(nodeAt(index)));
      expect(LEAVING_IDS.filter((agentId) => !unsure.includes(agentId) && listed.has(agentId))).toEqual([]);
    }
    for (const agentId of ECHO_IDS) expect(await callAgent(nodeAt(1), agentId)).toHaveProperty('result');
  });
});
