// An agent that counts to five, one event every half second. Run: node examples/dist/streaming-agent.js
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

const gateway = process.env['GATEWAY_URL'] ?? 'http://localhost:9090';

async function answer(request: IncomingMessage, response: ServerResponse) {
  const { id } = (await json(request)) as { id?: unknown };
  response.setHeader('Content-Type', 'text/event-stream');
  for (let count = 1; count <= 5 && !response.destroyed; count += 1) {
    const status = { state: count < 5 ? 'working' : 'completed' };
    const metadata = { count, total: 5 };
    const result = {
      kind: 'status-update',
      taskId: 'task-1',
      contextId: 'context-1',
      status,
      metadata,
      final: count === 5,
    };
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
    await sleep(500);
  }
  response.end();
}

function post(path: string, body: object) {
  const headers = { 'Content-Type': 'application/json' };
  return fetch(gateway + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
await once(server.listen(Number(process.env['PORT'] ?? 7002)), 'listening');
const { port } = server.address() as { port: number };
const card = {
  agent_id: 'streaming-agent',
  name: 'Counter',
  url: `http://localhost:${port}/`,
  skills: [{ id: 'count', name: 'Count', tags: ['stream'] }],
};
const reply = await post('/agents/register', card);
console.log(`registered at ${gateway}: HTTP ${reply.status} ${await reply.text()}`);

// A heartbeat every 30 seconds keeps it registered; Ctrl-C deregisters it.
setInterval(() => void post('/agents/heartbeat', { agent_id: card.agent_id }).catch(console.error), 30_000);
await once(process, 'SIGINT');
await post('/agents/deregister', { agent_id: card.agent_id }).catch(console.error);
process.exit();
