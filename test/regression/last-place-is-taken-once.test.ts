import { PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { registerAgent } from '../support/gateway-client.js';

test('fifty registrations race for the last place, and one gets it', async () => {
  await using node = await PatchbayProcess.start({ env: { PATCHBAY_MAX_AGENTS: '5' } });
  for (let n = 0; n < 4; n += 1) await registerAgent(node, `early-${n}`, 'http://localhost:9/');
  const statuses = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const response = await fetch(`${node.url}/agents/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agent_id: `late-${n}`, name: 'late', url: 'http://localhost:9/' }),
      });
      const body = (await response.json()) as { error?: string };
      if (response.status === 409) expect(body.error).toMatch(/5/);
      return response.status;
    }),
  );
  expect(statuses.filter((status) => status === 200).length).toBe(1);
  expect(statuses.filter((status) => status === 409).length).toBe(49);
  expect(((await (await fetch(`${node.url}/agents`)).json()) as unknown[]).length).toBe(5);
  // Who is in may register again, and a place that was left can be taken.
  await registerAgent(node, 'early-0', 'http://localhost:9/');
  await fetch(`${node.url}/agents/early-0`, { method: 'DELETE' });
  await registerAgent(node, 'next', 'http://localhost:9/');
});
