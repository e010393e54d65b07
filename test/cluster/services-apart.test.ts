import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, PatchbayProcess, startNatsCluster, startPostgres, startScriptedAgent } from '@patchbay/testkit';
import type { NatsCluster, PostgresServer, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listsAll } from '../support/agent-list.js';
import { expectHealed, HEALED_AFTER_MS, isAtFullRate, startSteadyLoad } from '../support/cluster-load.js';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { heartbeatsAt, registrationsAt } from '../support/load-callers.js';

const SERVICES = ['registry', 'liveness', 'dispatch', 'gateway'] as const;
type Service = (typeof SERVICES)[number];

const ECHO_IDS = Array.from({ length: 5 }, (_, index) => `echo-${index}`);

let agent: ScriptedAgent;
let nats: NatsCluster;
let postgres: PostgresServer;
let databaseUrl: string;
/** Two of each service, every one a process of its own. */
const nodes = new Map<string, PatchbayProcess>();
const acknowledged: string[] = [...ECHO_IDS];

beforeAll(async () => {
  [agent, nats, postgres] = await Promise.all([
    startScriptedAgent({ kind: 'echo' }),
    startNatsCluster(3),
    startPostgres(),
  ]);
  databaseUrl = await postgres.createDatabase();
  await Promise.all(SERVICES.flatMap((service) => [0, 1].map((which) => startService(service, which))));
  for (const agentId of ECHO_IDS) await registerAgent(nodeOf('gateway', 0), agentId, agent.url);
});
afterAll(async () => {
  await Promise.all([...nodes.values()].map((node) => node.stop('SIGKILL')));
  await Promise.all([agent[Symbol.asyncDispose](), nats.stop(), postgres.stop()]);
});

/** Starts one service by its own command. Only the two that write get to know the database. */
async function startService(service: Service, which: number): Promise<void> {
  const writes = service === 'registry' || service === 'liveness';
  const node = await PatchbayProcess.start({
    entryPoint: `entry-points/${service}.js`,
    env: {
      PATCHBAY_NATS_URL: nats.urls.join(','),
      PATCHBAY_NODE_ID: `${service}-${which}`,
      // So that calls are spread over both dispatches even where a front had one of its own.
      PATCHBAY_LOCAL_FIRST: 'false',
      ...(writes ? { PATCHBAY_DATABASE_URL: databaseUrl } : {}),
    },
    readyWithinMs: 60_000,
  });
  nodes.set(`${service}-${which}`, node);
}

function nodeOf(service: Service, which: number): PatchbayProcess {
  const node = nodes.get(`${service}-${which}`);
  if (node === undefined) throw new Error(`there is no ${service} ${which}`);
  return node;
}

describe('registry, liveness, dispatch and gateway as processes of their own, two of each', () => {
  it('each runs its own service and no other', () => {
    for (const service of SERVICES) {
      expect(nodeOf(service, 0).output).toContain(`"services":["${service}"]`);
    }
  });

  it.each(SERVICES)('goes on when one %s is killed, and when it comes back', async (service) => {
    const fronts = service === 'gateway' ? [nodeOf('gateway', 1)] : [nodeOf('gateway', 0), nodeOf('gateway', 1)];
    const beside = fronts.flatMap((front, index) => [
      heartbeatsAt(front, ECHO_IDS),
      registrationsAt(front, `${service}-${index}`, acknowledged, agent.url),
    ]);
    const calls = await startSteadyLoad({ fronts, agentIds: ECHO_IDS, beside });
    await using load = calls.load;
    const killedMs = performance.now();
    await nodeOf(service, 0).stop('SIGKILL');
    await sleep(HEALED_AFTER_MS + 500);
    await isAtFullRate(calls);
    const startedMs = performance.now();
    await startService(service, 0);
    const backMs = performance.now();
    await sleep(1_000);
    await isAtFullRate(calls);
    await load.stop();

    expectHealed(load, { hurtMs: killedMs, startedMs, backMs });
    for (const which of [0, 1]) {
      await listsAll(nodeOf('gateway', which), acknowledged);
      expect(await callAgent(nodeOf('gateway', which), 'echo-0')).toHaveProperty('result');
    }
  });

  it('says so when the last of a service is gone, and serves what does not need it', async () => {
    await nodeOf('registry', 0).stop('SIGKILL');
    await nodeOf('registry', 1).stop('SIGKILL');
    const front = nodeOf('gateway', 0);
    await expect(registerAgent(front, 'too-late', agent.url)).rejects.toThrow(/503/);
    expect(await callAgent(front, 'echo-0')).toHaveProperty('result');
    await listsAll(front, acknowledged);
    await startService('registry', 1);
    await eventually(() => registerAgent(front, 'in-time', agent.url), { withinMs: 10_000 });
    expect(await callAgent(front, 'in-time')).toHaveProperty('result');
  });
});
