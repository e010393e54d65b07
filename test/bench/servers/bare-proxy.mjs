// The least that forwards: node:http in front, undici `request()` behind; no checks, no limits, no registry.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const [, , agentUrl] = process.argv;
const pool = new Pool(new URL(agentUrl).origin, { connections: null });

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.once('end', () => {
    forward(Buffer.concat(chunks), response).catch(() => response.destroy());
  });
});

async function forward(body, response) {
  const reply = await pool.request({
    path: '/',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const bytes = Buffer.from(await reply.body.arrayBuffer());
  response.writeHead(reply.statusCode, { 'Content-Type': 'application/json', 'Content-Length': bytes.length });
  response.end(bytes);
}

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.once('disconnect', () => process.exit());
