import { eventually, freePort, NatsServer, PatchbayCluster, startScriptedAgent, TcpProxy } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAgentIds, listsAll } from '../support/agent-list.js';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { callsTo } from '../support/load-callers.js';
import { LoadRecorder } from '../support/load-recorder.js';
import { deregister } from '../support/registry-calls.js';

let agent: ScriptedAgent;
let nats: NatsServer[];
/** The only route between the two nats-servers. */
let route: TcpProxy;
let cluster: PatchbayCluster;

beforeAll(async () => {
  agent = await startScriptedAgent({ kind: 'echo' });
  const [routePort, otherRoutePort] = [await freePort(), await freePort()];
  route = await TcpProxy.start(routePort);
  const clusterOf = (port: number, routes = ''): string =>
    `cluster { name: halves, listen: "127.0.0.1:${port}", no_advertise: true, ${routes} }`;
  nats = [
    await NatsServer.start({ config: clusterOf(routePort) }),
    await NatsServer.start({
      config: clusterOf(otherRoutePort, `routes: ["nats-route://127.0.0.1:${route.port}"]`),
    }),
  ];
  // Nodes 0 and 2 are on one side, node 1 is on the other; all reach the database.
  const envOf = (index: number) => ({ PATCHBAY_NATS_URL: nats[index % 2]?.url ?? '' });
  cluster = await PatchbayCluster.start({ nats, envOf });
});
afterAll(async () => {
  await cluster.stop();
  await route[Symbol.asyncDispose]();
  for (const server of nats) await server.stop();
  await agent[Symbol.asyncDispose]();
});

function nodeAt(index: number): PatchbayProcess {
  const node = cluster.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

describe('a partition between nodes', () => {
  it('leaves each side with the agents that it can reach, and is made up for afterwards', async () => {
    await registerAgent(nodeAt(0), 'before', agent.url);
    await registerAgent(nodeAt(1), 'leaving', agent.url);
    await using load = new LoadRecorder();
    load.add(
      cluster.nodes.map((node) => callsTo(node, ['before'])),
      50,
    );
    route.cut();
    // Writes go on on both sides: the database orders them. The other side finds them there within seconds.
    for (const index of [0, 1]) {
      const agentId = `from-${index}`;
      await eventually(() => registerAgent(nodeAt(index), agentId, agent.url), { withinMs: 15_000 });
      for (const node of cluster.nodes) {
        await listsAll(node, [agentId], 15_000);
        expect(await callAgent(node, agentId)).toHaveProperty('result');
      }
    }
    await eventually(async () => (await deregister(nodeAt(1), 'leaving')).status === 200, { withinMs: 15_000 });
    for (const node of cluster.nodes) {
      await eventually(async () => (await callAgent(node, 'leaving')).error?.code === -32002, { withinMs: 15_000 });
    }
    route.restore();
    // A registration is seen on the other side at once again.
    let round = 0;
    await eventually(
      async () => {
        const agentId = `after-${(round += 1)}`;
        await registerAgent(nodeAt(0), agentId, agent.url);
        return (await listAgentIds(nodeAt(1))).includes(agentId);
      },
      { withinMs: 30_000, everyMs: 200, what: 'a registration that crosses at once' },
    );
    await load.stop();
    expect(load.failures()).toEqual([]);
    const lists = await Promise.all(cluster.nodes.map((node) => listAgentIds(node)));
    expect(new Set(lists.map((ids) => ids.join())).size).toBe(1);
  });
});
