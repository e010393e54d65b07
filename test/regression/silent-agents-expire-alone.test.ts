import { eventually, PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { slow, startKubemqAgent } from '../support/kubemq-agents.js';

test('who beats stays, who is silent goes, and a call in flight outlives its agent', async () => {
  await using node = await PatchbayProcess.start({
    env: { PATCHBAY_AGENT_TTL_SECONDS: '3', PATCHBAY_SWEEP_INTERVAL_SECONDS: '1' },
  });
  await using agent = await startKubemqAgent(slow(8_000));
  await registerAgent(node, 'silent', agent.url);
  await registerAgent(node, 'beating', agent.url);
  const beats = setInterval(() => {
    void fetch(`${node.url}/agents/heartbeat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"agent_id":"beating"}',
    });
  }, 500);
  try {
    const inFlight = callAgent(node, 'silent');
    await eventually(() => agent.received.length === 1, { what: 'the call at the agent' });
    const isGone = async (): Promise<boolean> => (await fetch(`${node.url}/agents/silent`)).status === 404;
    await eventually(isGone, { withinMs: 15_000, everyMs: 200, what: 'the silent agent being removed' });
    expect((await callAgent(node, 'silent')).error?.code).toBe(-32002);
    expect((await fetch(`${node.url}/agents/beating`)).status).toBe(200);
    expect((await inFlight).result).toBeDefined();
    expect((await fetch(`${node.url}/agents/beating`)).status).toBe(200);
  } finally {
    clearInterval(beats);
  }
});
