import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

// An agent that closes idle connections after a second, and does not say so, races every call that comes at that
// moment on an old connection. No caller may see it, and no call may be made twice.
test('calls with pauses of about a second never meet a closing socket', async () => {
  const seen = new Map<unknown, number>();
  const agent = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { id: number };
      seen.set(id, (seen.get(id) ?? 0) + 1);
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: {} });
      // Written by hand, so that no Keep-Alive hint is sent.
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': body.length,
        connection: 'keep-alive',
      });
      response.end(body);
    });
  });
  agent.keepAliveTimeout = 0;
  agent.on('connection', (socket) => socket.setTimeout(1_000, () => socket.destroy()));
  await new Promise<void>((resolve) => {
    agent.listen(0, '127.0.0.1', resolve);
  });
  try {
    await using node = await PatchbayProcess.start();
    await registerAgent(node, 'idler', `http://localhost:${(agent.address() as AddressInfo).port}/`);
    let nextId = 0;
    const failures: unknown[] = [];
    for (const pauseMs of [970, 985, 995, 1_000, 1_005, 1_015]) {
      const ids = Array.from({ length: 100 }, () => (nextId += 1));
      const answers = await Promise.all(ids.map((id) => callAgent(node, 'idler', 'message/send', {}, id)));
      failures.push(...answers.filter((answer) => answer.error !== undefined));
      await delay(pauseMs);
    }
    expect(failures).toEqual([]);
    expect([...seen.values()].every((count) => count === 1)).toBe(true);
    expect(seen.size).toBe(nextId);
  } finally {
    agent.closeAllConnections();
    agent.close();
  }
});
