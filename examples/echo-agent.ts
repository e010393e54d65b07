// An agent that answers every message with its own text. Run: node examples/dist/echo-agent.js
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';

const gateway = process.env['GATEWAY_URL'] ?? 'http://localhost:9090';

async function answer(request: IncomingMessage, response: ServerResponse) {
  const { id, params } = (await json(request)) as { id?: unknown; params?: { message?: { parts?: unknown[] } } };
  const result = { kind: 'message', role: 'agent', messageId: randomUUID(), parts: params?.message?.parts ?? [] };
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

function post(path: string, body: object) {
  const headers = { 'Content-Type': 'application/json' };
  return fetch(gateway + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
await once(server.listen(Number(process.env['PORT'] ?? 7001)), 'listening');
const { port } = server.address() as { port: number };
const card = {
  agent_id: 'echo-agent',
  name: 'Echo',
  url: `http://localhost:${port}/`,
  skills: [{ id: 'echo', name: 'Echo', tags: ['echo'] }],
};
const reply = await post('/agents/register', card);
console.log(`registered at ${gateway}: HTTP ${reply.status} ${await reply.text()}`);

// A heartbeat every 30 seconds keeps it registered; Ctrl-C deregisters it.
setInterval(() => void post('/agents/heartbeat', { agent_id: card.agent_id }).catch(console.error), 30_000);
await once(process, 'SIGINT');
await post('/agents/deregister', { agent_id: card.agent_id }).catch(console.error);
process.exit();
