// The well-known reverse proxy from npm, with kept connections to the agent.
import { Agent, createServer } from 'node:http';
import httpProxy from 'http-proxy';

const [, , agentUrl] = process.argv;
const proxy = httpProxy.createProxyServer({
  target: new URL(agentUrl).origin,
  agent: new Agent({ keepAlive: true }),
  ignorePath: true,
});
proxy.on('error', (_error, _request, response) => response.destroy());

const server = createServer((request, response) => proxy.web(request, response));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.once('disconnect', () => process.exit());
