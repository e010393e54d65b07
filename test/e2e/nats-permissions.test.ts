import { fileURLToPath } from 'node:url';
import { Events, connect } from 'nats';
import type { NatsConnection } from 'nats';
import { eventually, NatsServer, PatchbayProcess, startPostgres, startScriptedAgent } from '@patchbay/testkit';
import type { PostgresServer, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { registerAgent } from '../support/gateway-client.js';

const CONFIG = fileURLToPath(new URL('../../infra/nats/one-server.conf', import.meta.url));
const PASSWORDS = { NATS_NODE_PASSWORD: 'n0de', NATS_CALLER_PASSWORD: 'caller', NATS_WATCHER_PASSWORD: 'watcher' };
const REQUEST = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { text: 'hello' } });

let nats: NatsServer;
let postgres: PostgresServer;
let node: PatchbayProcess;
let agent: ScriptedAgent;
const connections: NatsConnection[] = [];

beforeAll(async () => {
  // The configuration takes passwords from the environment of the server, which has ours.
  Object.assign(process.env, PASSWORDS);
  [nats, postgres, agent] = await Promise.all([
    NatsServer.start({ configFile: CONFIG }),
    startPostgres(),
    startScriptedAgent({ kind: 'echo' }),
  ]);
  node = await PatchbayProcess.start({
    env: {
      PATCHBAY_NATS_URL: `nats://node:${PASSWORDS.NATS_NODE_PASSWORD}@127.0.0.1:${nats.port}`,
      PATCHBAY_DATABASE_URL: await postgres.createDatabase(),
    },
  });
  await registerAgent(node, 'echo-01', agent.url);
});
afterEach(async () => {
  await Promise.all(connections.splice(0).map((connection) => connection.close()));
});
afterAll(async () => {
  await node?.stop();
  await Promise.all([nats?.stop(), postgres?.stop(), agent?.[Symbol.asyncDispose]()]);
});

/** A client of NATS and what the server has refused it. */
async function client(user: 'caller' | 'watcher') {
  const connection = await connect({ servers: nats.url, user, pass: user, inboxPrefix: '_INBOX_caller' });
  connections.push(connection);
  const refused: string[] = [];
  void (async () => {
    for await (const { type, data } of connection.status())
      if (type === Events.Error) refused.push(JSON.stringify(data));
  })();
  return { connection, refused };
}

describe('with the users of infra/nats', () => {
  it('nobody connects without a password', async () => {
    await expect(connect({ servers: nats.url, reconnect: false })).rejects.toThrow(/authorization violation/i);
  });

  it('a caller calls agents', async () => {
    const { connection, refused } = await client('caller');
    const reply = await connection.request('a2a.echo-01', REQUEST, { timeout: 5_000 });
    expect(reply.json()).toEqual({ jsonrpc: '2.0', id: 1, result: { echo: { text: 'hello' } } });
    expect(refused).toEqual([]);
  });

  it.each(['a2a.>', 'a2a.echo-01', '_INBOX.>', 'patchbay.>', '>'])(
    'a caller cannot subscribe to %s: it would take calls or read what others are answered',
    async (subject) => {
      const { connection, refused } = await client('caller');
      const ended = new Promise<Error | null>((resolve) => {
        connection.subscribe(subject, { queue: 'dispatch', callback: (error) => resolve(error) });
      });
      expect((await ended)?.message).toMatch(/permissions violation/i);
      await eventually(() => refused.length > 0);
    },
  );

  it.each(['patchbay.registry.deregister', 'patchbay.replication', 'patchbay.nodes.node-9', '_INBOX.x.1'])(
    'a caller cannot publish to %s',
    async (subject) => {
      const { connection, refused } = await client('caller');
      connection.publish(subject, '{"agent_id":"echo-01"}');
      await eventually(() => refused.length > 0);
      expect((await fetch(`${node.url}/agents/echo-01`)).status).toBe(200);
    },
  );

  it('a watcher sees events and nodes, and can neither call nor write', async () => {
    const { connection, refused } = await client('watcher');
    const seen: string[] = [];
    connection.subscribe('patchbay.events.>', { callback: (_error, message) => seen.push(message.subject) });
    connection.subscribe('patchbay.nodes.*', { callback: (_error, message) => seen.push(message.subject) });
    await connection.flush();
    await registerAgent(node, 'echo-02', agent.url);
    await eventually(
      () =>
        seen.includes('patchbay.events.registered.echo-02') &&
        seen.some((subject) => subject.startsWith('patchbay.nodes.')),
    );
    expect(refused).toEqual([]);
    connection.publish('a2a.echo-01', REQUEST);
    connection.publish('patchbay.registry.deregister', '{}');
    await eventually(() => refused.length === 2);
  });
});
