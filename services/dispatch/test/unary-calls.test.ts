import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { BusHeader } from '@patchbay/bus';
import { eventually, freePort, startScriptedAgent } from '@patchbay/testkit';
import type { AgentScript, ScriptedAgent } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { DispatchRig, request } from './dispatch-rig.js';

async function rigWith(
  script: AgentScript,
  options = {},
): Promise<{ rig: DispatchRig; agent: ScriptedAgent } & AsyncDisposable> {
  const agent = await startScriptedAgent(script);
  const rig = new DispatchRig(options);
  rig.register('echo-01', agent.url);
  return {
    rig,
    agent,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      await agent[Symbol.asyncDispose]();
    },
  };
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

describe('a unary call that fails', () => {
  test('of an unknown agent: nobody serves the subject; named by header: -32002', async () => {
    await using rig = new DispatchRig();
    expect((await rig.refusal('nobody', request('message/send'))).code).toBe('no_dispatcher');
    const call = rig.bus.request(rig.subjects.dispatchNode('node-1'), Buffer.from(request('x', {}, 'id-1')), {
      timeoutMs: 1_000,
      headers: { [BusHeader.agent]: 'nobody' },
    });
    await expect(call).rejects.toMatchObject({ code: 'agent_not_found', message: 'nobody' });
  });

  test.each([
    [500, 'agent_http_error', -32603, 'internal error: agent answered HTTP 500'],
    [400, 'agent_http_error', -32603, 'internal error: agent answered HTTP 400'],
    [404, 'agent_http_error', -32603, 'internal error: agent answered HTTP 404'],
    [502, 'agent_http_error', -32603, 'internal error: agent unavailable (HTTP 502)'],
    [503, 'agent_http_error', -32603, 'internal error: agent unavailable (HTTP 503)'],
    [504, 'deadline_exceeded', -32001, 'agent timeout: agent answered HTTP 504'],
  ])('on HTTP %i', async (status, code, number, message) => {
    await using world = await rigWith({ kind: 'error', status });
    const error = await world.rig.refusal('echo-01', request('message/send', {}, 'x'));
    expect(error.code).toBe(code);
    expect(error.body).toEqual({ jsonrpc: '2.0', id: 'x', error: { code: number, message } });
  });

  test('on a redirect, which is not followed', async () => {
    await using other = await startScriptedAgent({ kind: 'echo' });
    await using world = await rigWith({ kind: 'error', status: 307, headers: { location: other.url } });
    const error = await world.rig.refusal('echo-01', request('message/send'));
    expect(error.body?.error.message).toContain('agent answered HTTP 307');
    expect(other.requests).toHaveLength(0);
  });

  test.each<[string, AgentScript, string]>([
    ['HTML', { kind: 'html' }, 'HTML'],
    ['an empty body', { kind: 'empty' }, 'empty body'],
    ['an empty 204', { kind: 'empty', status: 204 }, 'empty body'],
    [
      'plain text',
      { kind: 'fixed', body: 'hello', headers: { 'content-type': 'text/plain' } },
      'not a JSON object but text/plain',
    ],
    ['broken JSON', { kind: 'fixed', body: '{"jsonrpc":"2.0",}' }, 'not a JSON object'],
    ['a JSON array', { kind: 'fixed', body: '[]' }, 'not a JSON object'],
    ['invalid UTF-8', { kind: 'fixed', body: Buffer.from('{"a":"\xff"}', 'latin1') }, 'not a JSON object'],
    [
      'gzip',
      { kind: 'fixed', body: gzipSync('{}'), headers: { 'content-encoding': 'gzip' } },
      'Content-Encoding gzip was not asked for',
    ],
  ])('on %s', async (_, script, what) => {
    await using world = await rigWith(script);
    const error = await world.rig.refusal('echo-01', request('message/send'));
    expect(error.code).toBe('agent_bad_reply');
    expect(error.body?.error).toEqual({ code: -32603, message: `internal error: bad reply from agent: ${what}` });
  });

  test.each([
    ['before the reply', 'before-reply', 'connection closed before the reply'],
    ['in the middle of it', 'mid-reply', 'connection closed before the end of the reply'],
  ] as const)('when the connection is reset %s; the call is made once', async (_, when, words) => {
    await using world = await rigWith({ kind: 'dying', when });
    const error = await world.rig.refusal('echo-01', request('message/send'));
    expect(error).toMatchObject({ code: 'agent_bad_reply', message: words });
    expect(world.agent.requests).toHaveLength(1);
  });

  test('when the connection closes before the promised length', async () => {
    await using world = await rigWith({
      kind: 'custom',
      handle: (incoming, response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{"jsonrpc":', () => incoming.socket.end());
      },
    });
    const error = await world.rig.refusal('echo-01', request('message/send'));
    expect(error.code).toBe('agent_bad_reply');
    expect(error.message).toMatch(/end of the reply|length/);
  });

  test('when its URL cannot be called, and the slot is not lost', async () => {
    await using rig = new DispatchRig({ agentConcurrency: 1 });
    rig.register('odd-01', 'http://host:99999/');
    for (let round = 0; round < 2; round += 1) {
      expect((await rig.refusal('odd-01', request('message/send'))).code).toBe('agent_unreachable');
    }
    expect(rig.dispatch.inHand()).toBe(0);
  });

  test('when what answers is not HTTP', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end('SSH-2.0-OpenSSH_9.6\r\n'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await using rig = new DispatchRig();
    rig.register('ssh-01', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const error = await rig.refusal('ssh-01', request('message/send'));
    server.close();
    expect(error).toMatchObject({ code: 'agent_bad_reply' });
    expect(error.message).toContain('not an HTTP/1.1 response');
  });

  test('with words made from the error code when the connection is refused on both addresses of localhost', async () => {
    await using rig = new DispatchRig();
    rig.register('down-01', `http://localhost:${await freePort()}/`);
    const error = await rig.refusal('down-01', request('message/send', {}, 1_753_000_000_000));
    expect(error.code).toBe('agent_unreachable');
    expect(error.body).toEqual({
      jsonrpc: '2.0',
      id: 1_753_000_000_000,
      error: { code: -32603, message: 'internal error: agent unreachable: connection refused' },
    });
  });

  test('when the host has no address', async () => {
    await using rig = new DispatchRig();
    rig.register('lost-01', 'http://no-such-host.invalid/');
    const error = await rig.refusal('lost-01', request('message/send'));
    expect(error.code).toBe('agent_unreachable');
    expect(error.message).toMatch(/^host (not found|name lookup failed)$/);
  });

  test('when TLS is spoken to an agent without', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig();
    rig.register('tls-01', agent.url.replace('http:', 'https:'));
    const error = await rig.refusal('tls-01', request('message/send'));
    expect(error.code).toBe('agent_unreachable');
    expect(error.message).toMatch(/^TLS handshake failed/);
  });

  test('at its deadline, with the upstream call aborted and the slot free', async () => {
    await using world = await rigWith({ kind: 'silent' }, { agentConcurrency: 1 });
    const started = performance.now();
    const error = await world.rig.refusal('echo-01', request('message/send'), { timeoutMs: 300 });
    const took = performance.now() - started;
    expect(error.code).toBe('deadline_exceeded');
    expect(took).toBeGreaterThan(280);
    expect(took).toBeLessThan(600);
    await eventually(() => world.agent.abandoned === 1 && world.rig.dispatch.inHand() === 0);
    world.agent.play({ kind: 'echo' });
    await world.rig.call('echo-01', request('message/send'));
  });

  test('when the caller leaves: the connection to the agent is closed', async () => {
    await using world = await rigWith({ kind: 'silent' });
    const leaving = new AbortController();
    const call = world.rig.refusal('echo-01', request('message/send'), { signal: leaving.signal });
    await eventually(() => world.agent.inHand === 1);
    leaving.abort();
    expect((await call).code).toBe('cancelled');
    await eventually(() => world.agent.abandoned === 1, { withinMs: 1_000 });
    expect(world.rig.dispatch.inHand()).toBe(0);
  });

  test('with the version of the caller: 1.0 callers get an ErrorInfo', async () => {
    await using world = await rigWith({ kind: 'error', status: 504 });
    const error = await world.rig.refusal('echo-01', request('SendMessage'), {
      headers: { [BusHeader.a2aVersion]: '1.0' },
    });
    expect(error.body?.error).toMatchObject({ code: -32603, data: [{ reason: 'AGENT_TIMEOUT', domain: 'patchbay' }] });
  });

  test('when it asks for a version that nobody speaks', async () => {
    await using world = await rigWith({ kind: 'echo' });
    const error = await world.rig.refusal('echo-01', request('SendMessage'), {
      headers: { [BusHeader.a2aVersion]: '99.0' },
    });
    expect(error.body?.error).toMatchObject({ code: -32009, data: [{ reason: 'VERSION_NOT_SUPPORTED' }] });
    expect(world.agent.requests).toHaveLength(0);
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
