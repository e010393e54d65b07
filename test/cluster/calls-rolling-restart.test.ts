import { setTimeout as pause } from 'node:timers/promises';
import { PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import type { RpcAnswer } from '../support/gateway-client.js';

test('a node that leaves in order and comes back costs no call through the others', async () => {
  await using agent = await startScriptedAgent({ kind: 'slow', ms: 30 });
  // Every call crosses the bus, so that a third of them is in the hands of the node that leaves; and the limit is low,
  // so that its share of it is missed.
  const env = { PATCHBAY_LOCAL_FIRST: 'false', PATCHBAY_AGENT_CONCURRENCY: '18' };
  await using cluster = await PatchbayCluster.start({ env });
  const [first, second, third] = cluster.nodes;
  if (first === undefined || second === undefined || third === undefined) throw new Error('a node is missing');
  await registerAgent(first, 'slow-01', agent.url);
  const answers: RpcAnswer[] = [];
  const stop = new AbortController();
  const callers = [first, first, first, second, second, second].map(async (node) => {
    while (!stop.signal.aborted) answers.push(await callAgent(node, 'slow-01', 'message/send', {}, answers.length));
  });
  await pause(300);
  expect(await third.stop('SIGTERM')).toBe(0);
  await pause(300);
  await cluster.startNode(2);
  await pause(300);
  stop.abort();
  await Promise.all(callers);
  expect(answers.filter(({ result }) => result === undefined)).toEqual([]);
  expect(agent.requests.length).toBe(answers.length);
});
