import {
  eventually,
  PatchbayCluster,
  PatchbayProcess,
  startPostgres,
  startScriptedAgent,
  TcpProxy,
} from '@patchbay/testkit';
import type { PostgresServer, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAgentIds, listsAll } from '../support/agent-list.js';
import { callAgent } from '../support/gateway-client.js';
import type { RpcAnswer } from '../support/gateway-client.js';
import { deregister, heartbeat, readAgent, registerMany, tryRegister } from '../support/registry-calls.js';

let agent: ScriptedAgent;
let postgres: PostgresServer;
beforeAll(async () => {
  [agent, postgres] = await Promise.all([startScriptedAgent({ kind: 'echo' }), startPostgres()]);
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  await postgres.stop();
});

function nodeOf(cluster: PatchbayCluster, index: number): PatchbayProcess {
  const node = cluster.nodes[index % cluster.nodes.length];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

function idsOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** Runs `work` for 0 to `count` - 1, some at a time. */
async function repeat(count: number, atATime: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) await work(n);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}

describe('three nodes and three nats-servers', () => {
  let cluster: PatchbayCluster;
  beforeAll(async () => {
    cluster = await PatchbayCluster.start({ postgres });
  });
  afterAll(() => cluster.stop());

  it('an agent registered on one node is called through the others at once, and no more once it has left', async () => {
    const unexpected: unknown[] = [];
    await repeat(500, 8, async (n) => {
      const agentId = `hasty-${n}`;
      const [registrar, ...others] = [n, n + 1, n + 2].map((index) => nodeOf(cluster, index));
      const [b, c] = others;
      if (registrar === undefined || b === undefined || c === undefined) throw new Error('a node is missing');
      const registered = await tryRegister(registrar, agentId, agent.url);
      const called = await Promise.all([b, c].map((node) => callAgent(node, agentId, 'message/send', { n })));
      const left = await deregister(c, agentId);
      const after = await callAgent(registrar, agentId);
      if (registered.status !== 200 || left.status !== 200) unexpected.push([agentId, registered, left]);
      for (const answer of called) {
        if ((answer.result?.['echo'] as { n?: number } | undefined)?.n !== n) unexpected.push([agentId, answer]);
      }
      if (after.error?.code !== -32002) unexpected.push([agentId, 'after leaving', after]);
    });
    expect(unexpected).toEqual([]);
  });

  it('an agent that leaves under load gets no new call on any node, and those in flight are answered', async () => {
    await using slow = await startScriptedAgent({ kind: 'slow', ms: 200 });
    for (let round = 0; round < 3; round += 1) {
      await tryRegister(nodeOf(cluster, round), 'leaving', slow.url);
      const answers: { readonly startedMs: number; readonly answer: RpcAnswer }[] = [];
      const stop = new AbortController();
      const callers = Array.from({ length: 12 }, async (_, n) => {
        while (!stop.signal.aborted) {
          const startedMs = performance.now();
          answers.push({ startedMs, answer: await callAgent(nodeOf(cluster, n), 'leaving') });
        }
      });
      await eventually(() => answers.length > 24, { withinMs: 10_000 });
      expect((await deregister(nodeOf(cluster, round + 2), 'leaving')).status).toBe(200);
      const leftMs = performance.now();
      const receivedBefore = slow.requests.length;
      for (let n = 0; n < 30; n += 1) {
        expect((await callAgent(nodeOf(cluster, n), 'leaving')).error?.code).toBe(-32002);
      }
      stop.abort();
      await Promise.all(callers);
      expect(slow.requests.length).toBe(receivedBefore);
      const answered = answers.filter(({ answer }) => answer.result !== undefined);
      const refused = answers.filter(({ answer }) => answer.error?.code === -32002);
      expect(answered.length + refused.length).toBe(answers.length);
      expect(answered.filter(({ startedMs }) => startedMs > leftMs)).toEqual([]);
      // Every call that reached the agent was answered by it.
      expect(answered.length).toBe(receivedBefore);
      slow.requests.length = 0;
    }
  });

  it('registrations of one id at the same time keep when it was first registered', async () => {
    const first = await tryRegister(nodeOf(cluster, 0), 'same', agent.url);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => tryRegister(nodeOf(cluster, n), 'same', agent.url, { description: `${n}` })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const since = answers.map(({ body }) => body['registered_at']);
    expect(new Set(since)).toEqual(new Set([first.body['registered_at']]));
    // All nodes end up with the same one of them.
    await eventually(async () => {
      const shown = await Promise.all([0, 1, 2].map((index) => readAgent(nodeOf(cluster, index), 'same')));
      return new Set(shown.map(({ body }) => JSON.stringify([body['description'], body['registered_at']]))).size === 1;
    });
  });

  it('a heartbeat answered by one node is seen on the others', async () => {
    await tryRegister(nodeOf(cluster, 0), 'beating', agent.url);
    for (const index of [0, 1, 2]) {
      const beat = await heartbeat(nodeOf(cluster, index), 'beating');
      expect(beat.status).toBe(200);
      const seen = String(beat.body['last_seen']);
      // At once where it was answered; elsewhere with the batch of the second.
      expect((await readAgent(nodeOf(cluster, index), 'beating')).body['last_seen']).toBe(seen);
      for (const other of [index + 1, index + 2]) {
        await eventually(
          async () => String((await readAgent(nodeOf(cluster, other), 'beating')).body['last_seen']) >= seen,
        );
      }
    }
  });

  it('of two nodes with one id the later ends and says why, and the earlier goes on', async () => {
    const twin = await PatchbayProcess.spawn({ env: cluster.envOf(1) });
    const end = await Promise.race([twin.exited, eventually(() => false, { withinMs: 30_000, what: 'its end' })]);
    await twin.stop('SIGKILL');
    expect(end).toBe(1);
    expect(twin.output).toContain('another node has the id node-1; give each node its own PATCHBAY_NODE_ID');
    await tryRegister(nodeOf(cluster, 0), 'still-there', agent.url);
    expect(await callAgent(nodeOf(cluster, 1), 'still-there')).toHaveProperty('result');
    expect(nodeOf(cluster, 1).child.exitCode).toBeNull();
  });

  it('a node that stood still for 1,000 events catches up', async () => {
    const missed = idsOf('unseen', 1_000);
    const late = nodeOf(cluster, 2);
    late.pause();
    await registerMany([nodeOf(cluster, 0), nodeOf(cluster, 1)], missed, agent.url);
    late.resume();
    await listsAll(late, missed, 20_000);
    for (const agentId of missed.slice(0, 20)) expect(await callAgent(late, agentId)).toHaveProperty('result');
    // The new ones come by the usual way again.
    await tryRegister(nodeOf(cluster, 0), 'seen', agent.url);
    expect(await callAgent(late, 'seen')).toHaveProperty('result');
  });

  it('what was registered through a node is called through the others as soon as that is killed', async () => {
    const orphans = idsOf('orphan', 1_000);
    await registerMany([nodeOf(cluster, 2)], orphans, agent.url);
    await nodeOf(cluster, 2).stop('SIGKILL');
    const unexpected: unknown[] = [];
    await repeat(orphans.length, 16, async (n) => {
      const answer = await callAgent(nodeOf(cluster, n % 2), orphans[n] ?? '');
      if (answer.result === undefined) unexpected.push([orphans[n], answer]);
    });
    expect(unexpected).toEqual([]);
    await cluster.startNode(2);
    await listsAll(nodeOf(cluster, 2), orphans);
  });

  it('a node that starts while 10,000 agents are registered serves any of them', async () => {
    const many = idsOf('many', 10_000);
    const nodes = [0, 1, 2].map((index) => nodeOf(cluster, index));
    await registerMany(nodes, many.slice(0, 8_000), agent.url, 200);
    // The last of them while it starts.
    const [newcomer] = await Promise.all([
      PatchbayProcess.start({ env: cluster.envOf(3), readyWithinMs: 60_000 }),
      registerMany(nodes, many.slice(8_000), agent.url),
    ]);
    cluster.nodes.push(newcomer);
    await listsAll(newcomer, many);
    const some = many.filter((_, index) => index % 100 === 0);
    const answers = await Promise.all(some.map((agentId) => callAgent(newcomer, agentId)));
    expect(answers.filter((answer) => answer.result === undefined)).toEqual([]);
    // And it is among those that a registration waits for.
    await tryRegister(newcomer, 'newest', agent.url);
    expect(await callAgent(nodeOf(cluster, 0), 'newest')).toHaveProperty('result');
  });
});

describe('three nodes with a limit, one of them on a link that breaks', () => {
  const LIMIT = 1_100;
  let cluster: PatchbayCluster;
  let link: TcpProxy;
  beforeAll(async () => {
    cluster = await PatchbayCluster.start({
      postgres,
      nodes: 2,
      natsServers: 1,
      env: { PATCHBAY_MAX_AGENTS: String(LIMIT) },
    });
    link = await TcpProxy.start(cluster.nats[0]?.port ?? 0);
    const env = { ...cluster.envOf(2), PATCHBAY_NATS_URL: `nats://127.0.0.1:${link.port}` };
    cluster.nodes.push(await PatchbayProcess.start({ env }));
  });
  afterAll(async () => {
    await cluster.stop();
    await link[Symbol.asyncDispose]();
  });

  it('a node whose link to NATS was cut for 1,000 events catches up', async () => {
    const missed = idsOf('unseen', LIMIT - 2);
    const cutOff = nodeOf(cluster, 2);
    await tryRegister(nodeOf(cluster, 0), 'known', agent.url);
    link.cut();
    await registerMany([nodeOf(cluster, 0), nodeOf(cluster, 1)], missed, agent.url);
    // Each side goes on with what it knows.
    expect(await listAgentIds(cutOff)).toEqual(['known']);
    for (const index of [0, 1, 2]) expect(await callAgent(nodeOf(cluster, index), 'known')).toHaveProperty('result');
    link.restore();
    await listsAll(cutOff, missed, 20_000);
    for (const agentId of missed.slice(0, 20)) expect(await callAgent(cutOff, agentId)).toHaveProperty('result');
  });

  it('of 50 registrations that race for the last place exactly one gets it', async () => {
    for (let round = 0; round < 5; round += 1) {
      const racers = idsOf(`racer-${round}`, 50);
      const answers = await Promise.all(racers.map((id, n) => tryRegister(nodeOf(cluster, n), id, agent.url)));
      const winners = racers.filter((_, n) => answers[n]?.status === 200);
      expect(winners).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 409)).toHaveLength(49);
      const [winner = ''] = winners;
      for (const index of [0, 1, 2]) expect(await callAgent(nodeOf(cluster, index), winner)).toHaveProperty('result');
      // Who is registered may register again, and who leaves makes room.
      expect((await tryRegister(nodeOf(cluster, round), winner, agent.url)).status).toBe(200);
      expect((await deregister(nodeOf(cluster, round), winner)).status).toBe(200);
    }
  });
});

describe('three nodes that remove silent agents after 3 s', () => {
  let cluster: PatchbayCluster;
  beforeAll(async () => {
    const env = { PATCHBAY_AGENT_TTL_SECONDS: '3', PATCHBAY_SWEEP_INTERVAL_SECONDS: '1' };
    cluster = await PatchbayCluster.start({ postgres, natsServers: 1, env });
  });
  afterAll(() => cluster.stop());

  it('an agent that expires is gone on all nodes, and one that heartbeats through any of them stays', async () => {
    await tryRegister(nodeOf(cluster, 0), 'silent', agent.url);
    await tryRegister(nodeOf(cluster, 0), 'alive', agent.url);
    const stopBeating = new AbortController();
    const beating = (async (): Promise<Set<number>> => {
      const statuses = new Set<number>();
      for (let n = 0; !stopBeating.signal.aborted; n += 1) {
        statuses.add((await heartbeat(nodeOf(cluster, n), 'alive')).status);
        await new Promise((resolve) => {
          setTimeout(resolve, 500);
        });
      }
      return statuses;
    })();
    for (const index of [0, 1, 2]) {
      await eventually(async () => !(await listAgentIds(nodeOf(cluster, index))).includes('silent'), {
        withinMs: 30_000,
      });
      expect((await callAgent(nodeOf(cluster, index), 'silent')).error?.code).toBe(-32002);
    }
    stopBeating.abort();
    expect(await beating).toEqual(new Set([200]));
    for (const index of [0, 1, 2]) expect(await callAgent(nodeOf(cluster, index), 'alive')).toHaveProperty('result');
    // Silent now, it leaves too: it was the heartbeats that kept it.
    await eventually(async () => (await listAgentIds(nodeOf(cluster, 1))).length === 0, { withinMs: 30_000 });
  });
});
