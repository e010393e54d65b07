import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BusHeader } from '@patchbay/bus';
import type { DispatchOptions } from '@patchbay/dispatch';
import { eventually, startScriptedAgent } from '@patchbay/testkit';
import type { AgentScript } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { DispatchRig, request, rigWithAgent } from './dispatch-rig.js';
import type { RigWithAgent } from './dispatch-rig.js';

function rigWith(script: AgentScript, options: Partial<DispatchOptions> = {}): Promise<RigWithAgent> {
  return rigWithAgent('echo-01', script, options);
}

describe('a unary call', () => {
  test('passes both bodies byte for byte', async () => {
    const reply = '{ "jsonrpc" : "2.0", "id":1,"result" :{"ü":"\\u00fc", "n":1.0}}\n';
    await using world = await rigWith({ kind: 'fixed', body: reply });
    const sent = ' {"jsonrpc":"2.0",  "id":1,"method":"message/send","params":{"a":1.0,"é":"\\u0041"}}  ';
    const answer = await world.rig.call('echo-01', sent);
    expect(Buffer.from(answer.body).toString()).toBe(reply);
    expect(world.agent.requests[0]?.body.toString()).toBe(sent);
  });

  test('sends the headers of the contract and nothing else', async () => {
    await using world = await rigWith({ kind: 'echo' });
    await world.rig.call('echo-01', request('message/send'), {
      headers: {
        [BusHeader.call]: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
        [BusHeader.caller]: 'alice',
        [BusHeader.hops]: '2',
        [BusHeader.a2aVersion]: '1.0.3',
        [BusHeader.a2aExtensions]: 'https://a.example/one, https://a.example/two',
        'Patchbay-Fwd-X-Custom-Header': 'kept',
        'Patchbay-Fwd-x-request-id': 'r-1',
        'Patchbay-Fwd-Accept': 'text/event-stream',
        'Patchbay-Fwd-X-KubeMQ-Caller-ID': 'forged',
        'Patchbay-Fwd-X-Forwarded-For': '1.2.3.4',
        'Patchbay-Fwd-X-Authorization': 'secret',
        'Patchbay-Fwd-X-My-Cookie': 'secret',
        'Patchbay-Fwd-Authorization': 'secret',
        'Patchbay-Fwd-X-Smiley': '☺',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00',
        tracestate: 'vendor=1',
      },
    });
    const [{ headers, url, method } = { headers: {}, url: '', method: '' }] = world.agent.requests;
    expect({ method, url }).toEqual({ method: 'POST', url: '/' });
    expect(headers).toEqual({
      host: `localhost:${world.agent.port}`,
      connection: 'keep-alive',
      'content-length': expect.any(String),
      'content-type': 'application/json',
      accept: 'text/event-stream',
      'x-kubemq-caller-id': 'alice',
      'patchbay-hops': '2',
      'x-custom-header': 'kept',
      'x-request-id': 'r-1',
      'a2a-version': '1.0',
      'a2a-extensions': 'https://a.example/one, https://a.example/two',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00',
      tracestate: 'vendor=1',
    });
  });

  test('names an unknown caller, asks for JSON, and says no version to agents when the caller said none', async () => {
    await using world = await rigWith({ kind: 'echo' });
    await world.rig.call('echo-01', request('message/send'));
    const headers = world.agent.requests[0]?.headers ?? {};
    expect(headers['x-kubemq-caller-id']).toBe('anonymous');
    expect(headers.accept).toBe('application/json');
    expect(headers['a2a-version']).toBeUndefined();
    expect(headers['accept-encoding']).toBeUndefined();
  });

  test("hands back the agent's extensions and version, repeated lines merged", async () => {
    const headers = {
      'A2A-Extensions': ['urn:one', 'urn:two'],
      'A2A-Version': '1.0',
      'X-Secret': 'no',
      'Set-Cookie': 'no',
    };
    await using world = await rigWith({ kind: 'echo', headers });
    const answer = await world.rig.call('echo-01', request('SendMessage'));
    expect(answer.headers).toEqual({ [BusHeader.a2aExtensions]: 'urn:one, urn:two', [BusHeader.a2aVersion]: '1.0' });
  });

  test.each(['', 'a2a', 'a2a/', 'a/../b//c?x=1&y=%2F&z', '?q', "it's|odd"])(
    'calls the URL as registered: /%s',
    async (path) => {
      await using world = await rigWith({ kind: 'echo' });
      world.rig.register('echo-01', world.agent.url + path);
      await world.rig.call('echo-01', request('message/send'));
      expect(world.agent.requests[0]?.url).toBe(`/${path}`);
    },
  );

  test('takes a card update from the next call on', async () => {
    await using world = await rigWith({ kind: 'echo' });
    await using other = await startScriptedAgent({ kind: 'echo' });
    await world.rig.call('echo-01', request('message/send'));
    world.rig.register('echo-01', other.url);
    await world.rig.call('echo-01', request('message/send'));
    expect([world.agent.requests.length, other.requests.length]).toEqual([1, 1]);
  });

  test('bears headers that come twice', async () => {
    await using world = await rigWith({
      kind: 'custom',
      handle: (_incoming, response) => {
        response.socket?.end(
          'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Type: application/json\r\n' +
            'Content-Encoding: identity\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}',
        );
      },
    });
    expect(Buffer.from((await world.rig.call('echo-01', request('message/send'))).body).toString()).toBe('{}');
  });

  test('relays an error of the agent itself as it is', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":{"x":1}}}';
    await using world = await rigWith({ kind: 'fixed', body });
    expect(Buffer.from((await world.rig.call('echo-01', request('tasks/get'))).body).toString()).toBe(body);
  });

  test('reaches an agent that listens on ::1 alone', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' }, { host: '::1' });
    await using rig = new DispatchRig();
    rig.register('echo-01', `http://[::1]:${agent.port}/`);
    await rig.call('echo-01', request('message/send'));
    expect(agent.requests).toHaveLength(1);
  });
});

describe('the size of a reply', () => {
  const LIMIT = 100_000;

  test.each([
    ['with a length', false],
    ['chunked', true],
  ])('one byte over the limit is refused while reading, %s', async (_, chunked) => {
    await using world = await rigWith({ kind: 'oversize', bytes: LIMIT + 1, chunked }, { maxResponseBytes: LIMIT });
    const error = await world.rig.refusal('echo-01', request('message/send'));
    expect(error.body?.error).toEqual({
      code: -32603,
      message: `internal error: response too large: over ${LIMIT} bytes`,
    });
  });

  test.each([
    ['with a length', false],
    ['chunked', true],
  ])('exactly the limit passes, %s', async (_, chunked) => {
    await using world = await rigWith({ kind: 'oversize', bytes: LIMIT, chunked }, { maxResponseBytes: LIMIT });
    expect((await world.rig.call('echo-01', request('message/send'))).body.length).toBe(LIMIT);
  });

  test('the default is 10 MiB: one byte more, chunked, is refused before its content is looked at', async () => {
    await using world = await rigWith({ kind: 'oversize', bytes: 10_485_761, chunked: true });
    expect((await world.rig.refusal('echo-01', request('message/send'))).code).toBe('response_too_large');
  });

  test('an endless reply is cut at the limit', async () => {
    await using world = await rigWith({ kind: 'firehose', bytesPerSecond: 500_000_000 }, { maxResponseBytes: LIMIT });
    expect((await world.rig.refusal('echo-01', request('message/send'))).code).toBe('response_too_large');
    await eventually(() => world.agent.openConnections === 0);
  });

  test('a reply that comes byte by byte arrives whole', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: 'x'.repeat(3_000) });
    await using world = await rigWith({
      kind: 'custom',
      handle: async (_incoming, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        for (const byte of Buffer.from(body)) {
          response.write(Buffer.of(byte));
          await new Promise(setImmediate);
        }
        response.end();
      },
    });
    expect(Buffer.from((await world.rig.call('echo-01', request('message/send'))).body).toString()).toBe(body);
  });
});

describe('a notification', () => {
  const NOTIFICATION = '{"jsonrpc":"2.0","method":"message/send"}';

  test.each<[string, AgentScript]>([
    ['an empty 202', { kind: 'empty', status: 202 }],
    ['an empty 204', { kind: 'empty', status: 204 }],
    ['an empty 200', { kind: 'empty' }],
    ['a body that is not JSON', { kind: 'html' }],
    ['a JSON reply', { kind: 'echo' }],
  ])('is forwarded and answered by nothing when the agent answers with %s', async (_, script) => {
    await using world = await rigWith(script);
    expect((await world.rig.call('echo-01', NOTIFICATION)).body.length).toBe(0);
    expect(world.agent.requests[0]?.body.toString()).toBe(NOTIFICATION);
  });

  test('still fails on an error of HTTP', async () => {
    await using world = await rigWith({ kind: 'error', status: 500 });
    expect((await world.rig.refusal('echo-01', NOTIFICATION)).code).toBe('agent_http_error');
  });
});

describe('connections', () => {
  test('an agent that closes idle sockets after a second never costs a call, and none is made twice', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' }, { idleCloseMs: 1_000 });
    await using rig = new DispatchRig();
    rig.register('idle-01', agent.url);
    for (const pauseMs of [0, 990, 1_000, 1_010]) {
      await new Promise((resolve) => {
        setTimeout(resolve, pauseMs);
      });
      await Promise.all(Array.from({ length: 100 }, (_, n) => rig.call('idle-01', request('message/send', { n }, n))));
    }
    expect(agent.requests).toHaveLength(400);
  });

  test('a connection that fails before anything was sent is tried once more', async () => {
    // Accepts and resets the first connection before TLS can be spoken; so nothing of the request was sent.
    let connections = 0;
    const server = createServer();
    server.on('connection', () => (connections += 1));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await using rig = new DispatchRig();
    rig.register('tls-01', `https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect((await rig.refusal('tls-01', request('message/send'))).code).toBe('agent_unreachable');
    server.close();
    expect(connections).toBe(2);
  });
});
