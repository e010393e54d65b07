// The agent that everything else forwards to: reads the request, answers with a fixed JSON-RPC reply.
import { createServer } from 'node:http';

const reply = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: { kind: 'message', role: 'agent', messageId: 'm-2', parts: [{ kind: 'text', text: 'hello yourself' }] },
  }),
);

const server = createServer((request, response) => {
  request.resume();
  request.once('end', () => {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': reply.length });
    response.end(reply);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.once('disconnect', () => process.exit());
