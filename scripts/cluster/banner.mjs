import { relative } from 'node:path';

/** Where everything is, and what to paste next. */
export function banner({ layout, pids, folder, nodeEnv, isRestarting, readyInMs }) {
  const [first, second] = layout.nodes;
  const [nats] = layout.nats;
  const place = relative('', folder) || '.';
  const row = (name, ...cells) => `  ${name.padEnd(9)} ${cells.join('   ')}   pid ${pids.get(name)}`;
  const message = { role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }] };
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } });
  const json = "-H 'Content-Type: application/json'";
  const card = JSON.stringify({ agent_id: 'echo-agent', name: 'Echo', url: 'http://localhost:7001/' });
  return [
    `Three nodes are ready in ${(readyInMs / 1_000).toFixed(1)} s`,
    '',
    ...layout.nodes.map((node) =>
      row(node.name, `http://localhost:${node.http}`, `metrics http://localhost:${node.metrics}/metrics`),
    ),
    ...layout.nats.map((server) =>
      row(server.name, `nats://localhost:${server.port}`, `monitoring http://localhost:${server.monitoring}`),
    ),
    row('postgres', `localhost:${layout.postgres.port}, database patchbay`),
    `  data      ${place}, with the logs in ${place}/logs`,
    '',
    'An agent that listens on port 7001 and registers through node-1:',
    `  GATEWAY_URL=http://localhost:${first.http} node examples/dist/echo-agent.js`,
    'or register one by hand:',
    `  curl -X POST http://localhost:${first.http}/agents/register ${json} -d '${card}'`,
    'Call it through node-2:',
    `  curl -X POST http://localhost:${second.http}/a2a/echo-agent ${json} -d '${call}'`,
    'Call it over NATS, without a gateway:',
    `  ${natsCall(nats.port, call)}`,
    'A fourth process, which only forwards calls to agents:',
    `  node --env-file=${relative('', nodeEnv)} services/patchbay/dist/main.js --services dispatch`,
    'Stop a node and let it go on; calls through the others are answered meanwhile:',
    `  kill -STOP ${pids.get(second.name)}; sleep 10; kill -CONT ${pids.get(second.name)}`,
    '',
    isRestarting
      ? 'A part that ends is started again. Ctrl-C stops everything.'
      : 'When a part ends, all end ("npm run cluster -- --restart" starts it again). Ctrl-C stops everything.',
  ].join('\n');
}

/** With the client that the nodes use; the inbox prefix is the one that `caller` may read. */
function natsCall(port, call) {
  const options = `{ servers: 'localhost:${port}', user: 'caller', pass: 'caller', inboxPrefix: '_INBOX_caller' }`;
  const script =
    `const nats = await require('nats').connect(${options}); ` +
    `console.log((await nats.request('a2a.echo-agent', process.argv[1])).string()); await nats.close()`;
  return `node -e "(async () => { ${script} })()" '${call}'`;
}
