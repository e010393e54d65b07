import { eventually, PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

const LIMIT = 10;
const WORK_MS = 1_000;
let cluster: PatchbayCluster;
let agent: ScriptedAgent;

beforeAll(async () => {
  agent = await startScriptedAgent({ kind: 'slow', ms: WORK_MS });
  cluster = await PatchbayCluster.start({ env: { PATCHBAY_AGENT_CONCURRENCY: String(LIMIT) } });
  await registerAgent(node(0), 'busy', agent.url);
});

afterAll(async () => {
  await cluster?.stop();
  await agent?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await eventually(() => agent.inHand === 0, { withinMs: 10_000, what: 'the agent being idle' });
});

function node(index: number): PatchbayProcess {
  const found = cluster.nodes[index];
  if (found === undefined) throw new Error(`there is no node ${index}`);
  return found;
}

interface Burst {
  readonly answered: number;
  readonly refused: number;
  readonly other: readonly unknown[];
  /** Time of the slowest refusal. */
  readonly refusedMs: number;
}

/** Calls the agent once through each of `nodes`, all at once. */
async function burst(nodes: readonly PatchbayProcess[]): Promise<Burst> {
  const startMs = performance.now();
  const answers = await Promise.all(
    nodes.map(async (through) => {
      const answer = await callAgent(through, 'busy');
      return { answer, tookMs: performance.now() - startMs };
    }),
  );
  const refusals = answers.filter(({ answer }) => answer.error?.message.includes('concurrency limit') === true);
  const isOther = ({ answer }: (typeof answers)[number]): boolean =>
    answer.result === undefined && answer.error?.message.includes('concurrency limit') !== true;
  return {
    answered: answers.filter(({ answer }) => answer.result !== undefined).length,
    refused: refusals.length,
    other: answers.filter(isOther).map(({ answer }) => answer),
    refusedMs: Math.max(0, ...refusals.map(({ tookMs }) => tookMs)),
  };
}

/** Thirty calls, one after the other node. */
function spread(nodes: readonly PatchbayProcess[]): PatchbayProcess[] {
  return Array.from({ length: 30 }, (_, index) => nodes[index % nodes.length] ?? node(0));
}

/** Bursts until one fills the limit, which none may exceed. */
async function expectLimit(nodes: readonly PatchbayProcess[], withinMs = 10_000): Promise<void> {
  await eventually(
    async () => {
      const { answered, refused, other } = await burst(nodes);
      expect(other).toEqual([]);
      expect(answered + refused).toBe(nodes.length);
      expect(agent.maxInHand).toBeLessThanOrEqual(LIMIT);
      return answered === LIMIT;
    },
    { withinMs, what: `${LIMIT} calls at once` },
  );
}

describe('the concurrency limit of an agent', () => {
  test('holds over all nodes, and is used up whole from wherever the calls come', async () => {
    await expectLimit(spread(cluster.nodes));
    for (const through of [cluster.nodes, [node(1)]]) {
      const { answered, refused, other, refusedMs } = await burst(spread(through));
      expect({ answered, refused, other }).toEqual({ answered: LIMIT, refused: 20, other: [] });
      // Refused at once: long before a slot became free.
      expect(refusedMs).toBeLessThan(WORK_MS);
    }
    expect(agent.maxInHand).toBe(LIMIT);
  });

  test('counts streams too', async () => {
    const stream = (through: PatchbayProcess): Promise<string> =>
      fetch(`${through.url}/a2a/busy`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }),
        signal: AbortSignal.timeout(20_000),
      }).then((response) => response.text());
    const answers = await Promise.all(spread([node(2)]).map(stream));
    expect(answers.filter((text) => text.includes('"result"'))).toHaveLength(LIMIT);
    expect(answers.filter((text) => text.includes('concurrency limit'))).toHaveLength(20);
    expect(agent.maxInHand).toBe(LIMIT);
  });

  test('is whole again after a node was killed, and after it came back', async () => {
    await node(2).stop('SIGKILL');
    const left = [node(0), node(1)];
    await expectLimit(spread(left));
    await cluster.startNode(2);
    await expectLimit(spread(cluster.nodes));
    await expectLimit(spread([node(2)]));
  });

  test('is whole again after a node left in order, which refuses nobody meanwhile', async () => {
    const answers: unknown[] = [];
    const stop = new AbortController();
    const load = [node(0), node(2)].map(async (through) => {
      while (!stop.signal.aborted) answers.push(await callAgent(through, 'busy'));
    });
    await node(1).stop('SIGTERM');
    stop.abort();
    await Promise.all(load);
    expect(answers.filter((answer) => (answer as { result?: unknown }).result === undefined)).toEqual([]);
    await eventually(() => agent.inHand === 0, { withinMs: 10_000, what: 'the agent being idle' });
    await expectLimit(spread([node(0), node(2)]), 3_000);
  });
});
