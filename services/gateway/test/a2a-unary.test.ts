import { encodeJsonRpcError } from '@patchbay/a2a';
import { BusHeader } from '@patchbay/bus';
import type { Headers as BusHeaders } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import { eventually } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient, rawPost } from './raw-client.js';
import { registeredAgent, rpc, RunningFront } from './running-front.js';

let front: RunningFront;

beforeAll(async () => {
  front = await RunningFront.start();
  front.serve('echo', (exchange, delivery) => exchange.reply(delivery.body));
});

afterAll(() => front[Symbol.asyncDispose]());

/** The answer to a call, as status and parsed body. */
async function answer(response: Promise<Response>): Promise<{ status: number; body: unknown; text: string }> {
  const { status, text } = await response.then(async (it) => ({ status: it.status, text: await it.text() }));
  return { status, text, body: text === '' ? undefined : JSON.parse(text) };
}

function errorOf(code: number, message: unknown, id: unknown = 1): unknown {
  return { status: 200, body: { jsonrpc: '2.0', id, error: { code, message } } };
}

describe('a call', () => {
  it('passes through byte for byte, both ways', async () => {
    const body =
      '{ "id":1764522000123,"jsonrpc" : "2.0","method":"any/thing","params":{"n":1.0,"e":"\\u00e9é","big":12345678901234567890}}';
    const response = await front.call('echo', body, { 'content-type': 'application/json; charset=utf-8' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
    expect(await response.text()).toBe(body);
  });

  it('relays a reply of 10 MB', async () => {
    const body = rpc('message/send', 1, { text: 'x'.repeat(10_000_000) });
    expect(await (await front.call('echo', body)).text()).toBe(body);
  });

  it('relays the protocol headers of the agent', async () => {
    front.serve('extended', (exchange) =>
      exchange.reply(Buffer.from('{}'), { [BusHeader.a2aExtensions]: 'https://x.example/a', 'X-Secret': 'no' }),
    );
    const response = await front.call('extended', rpc('message/send'));
    expect(response.headers.get('a2a-extensions')).toBe('https://x.example/a');
    expect(response.headers.get('x-secret')).toBeNull();
  });

  it.each([
    ['1', 1],
    ['"1"', '1'],
    ['null', null],
    ['1764522000123', 1_764_522_000_123],
    ['"st09"', 'st09'],
  ])('with id %s keeps its value and type in a result and in an error', async (json, id) => {
    const body = `{"jsonrpc":"2.0","id":${json},"method":"m"}`;
    expect((await answer(front.call('echo', body))).text).toBe(body);
    expect((await answer(front.call('nobody', body))).body).toMatchObject({ id });
  });

  it('without an id is forwarded and answered with 202 and no body, whatever becomes of it', async () => {
    let received = '';
    front.serve('notified', (exchange, delivery) => {
      received = Buffer.from(delivery.body).toString();
      exchange.reply(Buffer.from('{"ignored":true}'));
    });
    const notification = '{"jsonrpc":"2.0","method":"notify"}';
    expect(await answer(front.call('notified', notification))).toMatchObject({ status: 202, text: '' });
    expect(received).toBe(notification);
    expect(await answer(front.call('nobody', notification))).toMatchObject({ status: 202, text: '' });
  });
});

describe('checks, in their order', () => {
  const good = rpc('message/send', 7);

  it.each([
    [
      'a content type that is not JSON',
      'UPPER',
      good,
      { 'content-type': 'text/plain' },
      -32700,
      /text\/plain.*send Content-Type: application\/json/,
      null,
    ],
    ['a malformed content type', 'echo', good, { 'content-type': 'json' }, -32700, /"json"/, null],
    ['bad JSON', 'nobody', '{bad', {}, -32700, 'parse error: invalid JSON', null],
    ['an empty body', 'echo', '', {}, -32700, 'parse error: invalid JSON', null],
    ['JSON that is no object', 'echo', '"text"', {}, -32600, /not a JSON object/, null],
    ['a batch', 'echo', `[${good}]`, {}, -32600, /batches are not supported/, null],
    [
      'another version of JSON-RPC',
      'nobody',
      '{"jsonrpc":"1.0","id":7,"method":"m"}',
      {},
      -32600,
      'invalid request: invalid jsonrpc version',
      7,
    ],
    ['no method', 'nobody', '{"jsonrpc":"2.0","id":7}', {}, -32600, 'invalid request: missing method field', 7],
    [
      'an empty method',
      'nobody',
      '{"jsonrpc":"2.0","id":7,"method":""}',
      {},
      -32600,
      'invalid request: missing method field',
      7,
    ],
    [
      'an id with upper case',
      'UPPERCASE-BAD',
      good,
      {},
      -32600,
      /2-128 characters of a-z, 0-9 and "-"; got "UPPERCASE-BAD"/,
      7,
    ],
    ['an id of 1 character', 'a', good, {}, -32600, /got "a"/, 7],
    ['an id of 129 characters', 'a'.repeat(129), good, {}, -32600, /2-128 characters/, 7],
    ['an id of 8,000 characters', 'a'.repeat(8000), good, {}, -32600, /2-128 characters/, 7],
    ['an empty id', '', good, {}, -32600, /got ""/, 7],
    ['a wildcard', 'a.%3E', good, {}, -32600, /got "a\.%3E"/, 7],
    ['an id in percent escapes', '%65cho', good, {}, -32600, /got "%65cho"/, 7],
    ['a broken percent escape', 'a%zz', good, {}, -32600, /got "a%zz"/, 7],
    ['an id with an escaped slash', 'echo%2Fx', good, {}, -32600, /got/, 7],
    ['__proto__', '__proto__', good, {}, -32600, /got "__proto__"/, 7],
    ['an unknown agent', 'nobody', good, {}, -32002, 'agent not found: nobody', 7],
  ])('%s', async (_, agentId, body, headers, code, message, id) => {
    const expected = typeof message === 'string' ? message : expect.stringMatching(message);
    expect(await answer(front.call(agentId, body, headers))).toMatchObject(errorOf(code, expected, id) as object);
  });

  it('says that no content type came', async () => {
    using client = await RawClient.send(
      front.url,
      `POST /a2a/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${good.length}\r\n\r\n${good}`,
    );
    await client.closed();
    expect(client.body).toContain('no Content-Type came; send Content-Type: application/json');
    expect(client.body).toContain('"id":null');
  });

  it('refuses a version that nobody speaks', async () => {
    const { status, body } = await answer(front.call('echo', good, { 'a2a-version': '99.0' }));
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: 7, error: { code: -32009, data: [{ reason: 'VERSION_NOT_SUPPORTED' }] } });
  });

  it('refuses a body over the limit, with and without a declared length', async () => {
    const large = Buffer.alloc(10_485_761, 0x20);
    const chunked = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(large);
        controller.close();
      },
    });
    for (const headers of [{}, { 'a2a-version': '1.0' }]) {
      const status = 'a2a-version' in headers ? 413 : 200;
      expect(await answer(front.call('echo', large, headers))).toMatchObject({
        status,
        body: { error: { code: -32600 } },
      });
    }
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: chunked,
      duplex: 'half',
    } as const;
    const reply = await answer(fetch(`${front.url}/a2a/echo`, init));
    expect(reply).toMatchObject(errorOf(-32600, expect.stringMatching(/request too large/), null) as object);
  });

  it('ends a loop of gateways', async () => {
    front.serve('hops', (exchange, { headers }) => exchange.reply(Buffer.from(headers[BusHeader.hops] ?? '')));
    expect((await answer(front.call('hops', good))).text).toBe('1');
    expect((await answer(front.call('hops', good, { 'patchbay-hops': '7' }))).text).toBe('8');
    expect(await answer(front.call('hops', good, { 'patchbay-hops': '8' }))).toMatchObject(
      errorOf(-32603, expect.stringMatching(/through 8 gateways/), 7) as object,
    );
  });
});

describe('headers', () => {
  it('forwards X-… and Accept, and keeps credentials and forgeries back', async () => {
    let seen: BusHeaders = {};
    front.serve('headers', (exchange, { headers }) => {
      seen = headers;
      exchange.reply(Buffer.from('{}'));
    });
    await front.call('headers', rpc('m'), {
      'X-Custom-Header': 'one',
      'X-Request-ID': 'two',
      'X-Forwarded-For': '1.2.3.4',
      'X-Forwarded-Host': 'evil.example',
      'X-KubeMQ-Caller-ID': 'root',
      'X-My-Authorization': 'secret',
      'X-Cookie-Jar': 'secret',
      Authorization: 'Bearer secret',
      Cookie: 'a=secret',
      'Proxy-Authorization': 'secret',
      'User-Agent': 'test',
      Accept: 'application/json',
      'A2A-Extensions': 'https://x.example/a',
      'A2A-Version': '1.0',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00',
      tracestate: 'a=b',
    });
    expect(seen).toEqual({
      'Patchbay-Call': expect.stringMatching(/^[0-9A-Z]{26}$/),
      'Patchbay-Caller': 'anonymous',
      'Patchbay-Hops': '1',
      'Patchbay-Fwd-x-custom-header': 'one',
      'Patchbay-Fwd-x-request-id': 'two',
      'Patchbay-Fwd-accept': 'application/json',
      'A2A-Extensions': 'https://x.example/a',
      'A2A-Version': '1.0',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00',
      tracestate: 'a=b',
    });
  });

  it('lets no line break into a value', async () => {
    let calls = 0;
    front.serve('smuggled', (exchange, { headers }) => {
      calls += 1;
      expect(Object.values(headers).join('')).not.toMatch(/[\r\n]/);
      exchange.reply(Buffer.from('{}'));
    });
    using client = await RawClient.send(
      front.url,
      rawPost(
        '/a2a/smuggled',
        rpc('m'),
        'X-Folded: a\r\n Patchbay-Caller: root\r\nX-Lf: a\nX-B: c\r\nConnection: close\r\n',
      ),
    );
    await client.closed();
    expect([200, 400]).toContain(client.status);
    expect(calls).toBeLessThanOrEqual(1);
  });

  it('continues the trace of the caller', async () => {
    const response = await front.call('echo', rpc('m'), {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    });
    expect(response.headers.get('x-trace-id')).toBe('0af7651916cd43dd8448eb211c80319c');
  });

  it('answers an offer of h2c as a plain request', async () => {
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n';
    using client = await RawClient.send(front.url, rawPost('/a2a/echo', rpc('m'), offer));
    await client.received(rpc('m'));
    expect(client.status).toBe(200);
  });
});

/** An agent `fails` until disposed of. */
function failing(code: ErrorCode): Disposable {
  const subscription = front.serve('fails', (exchange) => exchange.fail(code, 'why'));
  return { [Symbol.dispose]: () => void subscription.drain(0) };
}

describe('errors of dispatch', () => {
  it('are relayed in its own words, with 200', async () => {
    const worded = encodeJsonRpcError({
      code: 'agent_http_error',
      idJson: '1',
      detail: 'agent unavailable (HTTP 503)',
      version: undefined,
    });
    front.serve('worded', (exchange) => exchange.fail('agent_http_error', 'x', worded));
    expect(await answer(front.call('worded', rpc('m')))).toMatchObject(
      errorOf(-32603, 'internal error: agent unavailable (HTTP 503)') as object,
    );
  });

  const rows: [ErrorCode, number, string, number][] = [
    ['deadline_exceeded', -32001, 'agent timeout: fails', 200],
    ['agent_not_found', -32002, 'agent not found: fails', 200],
    ['concurrency_exceeded', -32603, 'internal error: concurrency limit exceeded', 429],
    ['rate_limited', -32603, 'internal error: why', 429],
    ['agent_unreachable', -32603, 'internal error: agent unreachable: why', 200],
    ['agent_bad_reply', -32603, 'internal error: bad reply from agent: why', 200],
    ['response_too_large', -32603, 'internal error: response too large: why', 200],
    ['unauthenticated', -32603, 'why', 401],
    ['permission_denied', -32603, 'forbidden: why', 403],
    ['bus_unavailable', -32603, 'internal error: why', 503],
    ['draining', -32603, 'internal error: why', 503],
    ['node_lost', -32603, 'internal error: why', 200],
    ['internal', -32603, 'internal error', 200],
  ];
  it.each(rows)('%s without words gets ours: %i', async (code, number, message, versionedStatus) => {
    using _ = failing(code);
    expect(await answer(front.call('fails', rpc('m')))).toMatchObject(errorOf(number, message) as object);
    const versioned = await answer(front.call('fails', rpc('m'), { 'a2a-version': '1.0' }));
    expect(versioned).toMatchObject({
      status: versionedStatus,
      body: { error: { code: -32603, data: [{ domain: 'patchbay' }] } },
    });
  });
});

describe('time', () => {
  it('is the caller’s own, answered when it is over', async () => {
    let timeoutMs = 0;
    front.serve('slow', async (exchange) => {
      timeoutMs = exchange.deadlineMs - performance.now();
      await new Promise((resolve) => exchange.signal.addEventListener('abort', resolve));
    });
    const started = performance.now();
    const body = rpc('message/send', 1, { configuration: { timeout: 0.3 } });
    expect(await answer(front.call('slow', body))).toMatchObject(errorOf(-32001, 'agent timeout: slow') as object);
    expect(performance.now() - started).toBeGreaterThan(280);
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(timeoutMs).toBeGreaterThan(250);
    expect(timeoutMs).toBeLessThanOrEqual(300);
  });

  it.each([
    [99_999, 3_600_000],
    [undefined, 5_000],
    [0, 5_000],
    [-1, 5_000],
    ['7', 5_000],
    [2.5, 2_500],
  ])('asked as %s is %i ms', async (timeout, expected) => {
    let given = 0;
    const subscription = front.serve('timed', (exchange) => {
      given = exchange.deadlineMs - performance.now();
      exchange.reply(Buffer.from('{}'));
    });
    await front.call('timed', rpc('m', 1, { configuration: { timeout } }));
    await subscription.drain(0);
    expect(given).toBeGreaterThan(expected - 500);
    expect(given).toBeLessThanOrEqual(expected);
  });
});

describe('an agent that nobody serves', () => {
  it('is asked for at the registry, once, when the directory does not know it', async () => {
    let lookups = 0;
    await using other = await RunningFront.start({
      registry: {
        lookup: (agentId) => {
          lookups += 1;
          return Promise.resolve(agentId === 'fresh' ? registeredAgent(agentId, 1) : null);
        },
      },
    });
    expect((await answer(other.call('nobody', rpc('m')))).body).toMatchObject({ error: { code: -32002 } });
    expect(lookups).toBe(1);
    expect((await answer(other.call('fresh', rpc('m')))).body).toMatchObject({
      error: { code: -32603, message: expect.stringMatching(/no node serves agent fresh/) },
    });
    expect(lookups).toBe(2);
  });

  it('is called as soon as somebody does, within a quarter of a second', async () => {
    await using other = await RunningFront.start({
      registry: { lookup: (agentId) => Promise.resolve(registeredAgent(agentId, 1)) },
    });
    const reply = other.call('late', rpc('m'));
    await new Promise((resolve) => setImmediate(resolve));
    other.serve('late', (exchange, delivery) => exchange.reply(delivery.body));
    expect((await answer(reply)).text).toBe(rpc('m'));
  });

  it('is not found when the registry has forgotten it and the directory not yet', async () => {
    front.know('stale');
    expect((await answer(front.call('stale', rpc('m')))).body).toMatchObject({ error: { code: -32002 } });
  });

  it('gets the reason when the registry cannot be asked', async () => {
    await using other = await RunningFront.start({
      registry: { lookup: () => Promise.reject(new PatchbayError('store_unavailable', 'the database is away')) },
    });
    expect((await answer(other.call('nobody', rpc('m')))).body).toMatchObject({
      error: { code: -32603, message: 'internal error: the database is away' },
    });
  });
});

describe('a client that leaves before its answer', () => {
  it.each(['end', 'resetAndDestroy', 'destroy'] as const)(
    'by %s ends the call at dispatch within a second',
    async (how) => {
      let leftAtMs = 0;
      const subscription = front.serve('waiting', async (exchange) => {
        await new Promise((resolve) => exchange.signal.addEventListener('abort', resolve));
        leftAtMs = performance.now();
      });
      using client = await RawClient.send(front.url, rawPost('/a2a/waiting', rpc('m')));
      await eventually(() => front.bus.stats().requests === 1, { what: 'the call arriving' });
      const started = performance.now();
      client.socket[how]();
      await eventually(() => leftAtMs > 0, { withinMs: 1_000, what: 'dispatch being told' });
      expect(leftAtMs - started).toBeLessThan(1_000);
      await subscription.drain(100);
      expect(front.bus.stats().requests).toBe(0);
    },
  );
});
