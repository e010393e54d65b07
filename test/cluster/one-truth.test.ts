import { eventually, PatchbayProcess, startNatsServer, startScriptedAgent } from '@patchbay/testkit';
import { expect, it } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

it('a second node with an embedded database on the same NATS ends and says why; the first goes on', async () => {
  await using nats = await startNatsServer();
  await using agent = await startScriptedAgent({ kind: 'echo' });
  const env = { PATCHBAY_NATS_URL: nats.url };
  await using first = await PatchbayProcess.start({ env: { ...env, PATCHBAY_NODE_ID: 'first' } });
  await registerAgent(first, 'echo', agent.url);
  const second = await PatchbayProcess.spawn({ env: { ...env, PATCHBAY_NODE_ID: 'second' } });
  await eventually(() => second.child.exitCode !== null, { withinMs: 30_000, what: 'the end of the second node' });
  expect(await second.stop()).toBe(1);
  expect(second.output).toMatch(/node first on this NATS has a registry already.*set PATCHBAY_DATABASE_URL/);
  expect(await callAgent(first, 'echo')).toHaveProperty('result');
});
