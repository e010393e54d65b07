import { PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import type { RpcAnswer } from '../support/gateway-client.js';
import { slow, startKubemqAgent } from '../support/kubemq-agents.js';

test('after the 200 no new call starts, and the calls in flight finish', async () => {
  await using node = await PatchbayProcess.start();
  await using agent = await startKubemqAgent(slow(300));
  for (let round = 0; round < 5; round += 1) {
    await registerAgent(node, 'leaving', agent.url);
    const answers: { readonly startedAt: number; readonly answer: RpcAnswer }[] = [];
    const load = new AbortController();
    const callers = Array.from({ length: 16 }, async () => {
      while (!load.signal.aborted) {
        const startedAt = performance.now();
        answers.push({ startedAt, answer: await callAgent(node, 'leaving') });
      }
    });
    while (answers.length < 16) await callAgent(node, 'nobody-here');
    const left = await fetch(`${node.url}/agents/leaving`, { method: 'DELETE' });
    const leftAt = performance.now();
    const receivedAt200 = agent.received.length;
    expect(left.status).toBe(200);
    for (let n = 0; n < 20; n += 1) {
      expect((await callAgent(node, 'leaving')).error?.code).toBe(-32002);
    }
    load.abort();
    await Promise.all(callers);
    expect(agent.received.length).toBe(receivedAt200);
    for (const { startedAt, answer } of answers) {
      if (answer.error !== undefined) expect(answer.error.code).toBe(-32002);
      if (startedAt > leftAt) expect(answer.error?.code).toBe(-32002);
    }
    // Every call that reached the agent was answered with its result: none was cut.
    expect(answers.filter(({ answer }) => answer.result !== undefined).length).toBe(receivedAt200);
    agent.received.length = 0;
  }
});
