import { connect } from 'node:net';
import { eventually, PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { registerAgent } from '../support/gateway-client.js';

test('a retry after a lost answer is a 200 with the same registered_at', async () => {
  await using node = await PatchbayProcess.start();
  const { hostname, port } = new URL(node.url);
  const card = JSON.stringify({ agent_id: 'retrying', name: 'retrying', url: 'http://localhost:9/' });
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.write(
    `POST /agents/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${card.length}\r\n\r\n${card}`,
  );
  const stored = await eventually(async () => {
    const response = await fetch(`${node.url}/agents/retrying`);
    return response.status === 200 ? ((await response.json()) as Record<string, unknown>) : undefined;
  });
  socket.resetAndDestroy();
  const again = await registerAgent(node, 'retrying', 'http://localhost:9/');
  expect(again['registered_at']).toBe(stored['registered_at']);
});
