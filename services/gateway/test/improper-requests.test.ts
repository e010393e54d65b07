import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient, rawPost } from './raw-client.js';
import { rpc, RunningFront } from './running-front.js';

let front: RunningFront;
let seen: Record<string, string> = {};

beforeAll(async () => {
  front = await RunningFront.start();
  front.serve('echo', async (exchange, { body, headers }) => {
    seen = headers;
    const own = { 'Patchbay-Fwd-X-A2A-Extensions': 'https://x.example/a' };
    if (exchange.wants === 'stream') {
      await exchange.write(body, own);
      exchange.end();
    } else exchange.reply(body, own);
  });
});

afterAll(() => front[Symbol.asyncDispose]());

/** Sends raw HTTP and waits for the answer's end. */
async function ask(text: string): Promise<RawClient> {
  const client = await RawClient.send(front.url, text);
  await client.received('\r\n\r\n');
  return client;
}

const JSON_TYPE = 'Content-Type: application/json\r\n';

describe('a request that HTTP/1.1 does not allow', () => {
  it.each([
    ['no Host', `GET /healthz HTTP/1.1\r\n\r\n`, 400, 'the Host header is missing'],
    ['no Host, to an agent', `POST /a2a/echo HTTP/1.1\r\n${JSON_TYPE}\r\n`, 400, 'the Host header is missing'],
    ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'the Host header is given twice'],
    [
      'an unknown expectation',
      `POST /a2a/echo HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\n${JSON_TYPE}Content-Length: 2\r\n\r\n{}`,
      417,
      'of expectations only 100-continue is understood',
    ],
    [
      'an unknown transfer coding',
      `POST /a2a/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n${JSON_TYPE}\r\n0\r\n\r\n`,
      501,
      'of transfer codings only chunked is understood; send the body as it is',
    ],
  ])('%s is refused in JSON, and closed', async (_, text, status, error) => {
    using client = await ask(text);
    await client.closed();
    expect(client.status).toBe(status);
    expect(JSON.parse(client.body)).toEqual({ error });
    expect(client.text).toMatch(/^X-Trace-Id: [0-9a-f]{32}\r$/im);
  });

  it('is not one of HTTP/1.0 without a Host', async () => {
    using client = await ask('GET /healthz HTTP/1.0\r\n\r\n');
    expect(client.status).toBe(200);
  });

  it('is not one that expects 100-continue', async () => {
    using client = await RawClient.send(front.url, rawPost('/a2a/echo', rpc('m'), 'Expect: 100-continue\r\n'));
    await client.received(rpc('m'));
    expect(client.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
  });
});

describe('the absolute form of a target', () => {
  it.each(['http://gateway.example:9090', 'HTTPS://gateway.example'])('%s reaches agents', async (base) => {
    using client = await RawClient.send(front.url, rawPost(`${base}/a2a/echo`, rpc('m')));
    await client.received(rpc('m'));
    expect(client.status).toBe(200);
  });

  it('counts before the Host header', async () => {
    using client = await ask(
      'GET http://gateway.example/a2a/echo/.well-known/agent-card.json HTTP/1.1\r\nHost: other.example\r\n\r\n',
    );
    await client.received('}');
    expect(JSON.parse(client.body)).toMatchObject({ url: 'http://gateway.example/a2a/echo' });
  });

  it('reaches the other routes, also without a path', async () => {
    using health = await ask('GET http://x/healthz?a=b HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(health.status).toBe(200);
    using root = await ask('GET http://x?a=b HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(root.status).toBe(404);
    expect(root.text).toContain('nothing is served at GET /?a=b');
  });
});

describe('what is wrong with the target is said before what is wrong with the body', () => {
  it.each([
    ['POST', '/nowhere', 404],
    ['POST', '/agents', 405],
    ['PUT', '/a2a/echo', 405],
    ['PUT', '/agents/register', 405],
    ['POST', '/.well-known/agent-card.json', 405],
  ])('%s %s with an empty, a broken and a large body is %i', async (method, path, status) => {
    for (const body of ['', '{', 'x'.repeat(2_000_000)]) {
      const response = await fetch(front.url + path, {
        method,
        headers: { 'content-type': 'application/json' },
        body,
      });
      expect(response.status).toBe(status);
      expect(await response.json()).toEqual({ error: expect.any(String) });
    }
  });
});

describe('headers', () => {
  it('of any number reach the agent, as long as their bytes are allowed', async () => {
    const names = Array.from({ length: 1_200 }, (_, at) => `x-${at}`);
    const lines = names.map((name) => `${name}:1\r\n`).join('');
    using client = await RawClient.send(front.url, rawPost('/a2a/echo', rpc('m'), lines));
    await client.received(rpc('m'));
    expect(names.filter((name) => seen[`Patchbay-Fwd-${name}`] !== '1')).toEqual([]);
  });

  it('that concern the connection alone, or are ours to set, do not reach the agent', async () => {
    const lines = 'X-Hop: 1\r\nX-End: 1\r\nX-KubeMQ-Anything: 1\r\nConnection: keep-alive, X-Hop\r\n';
    using client = await RawClient.send(front.url, rawPost('/a2a/echo', rpc('m'), lines));
    await client.received(rpc('m'));
    const forwarded = Object.keys(seen).filter((name) => name.startsWith('Patchbay-Fwd-'));
    expect(forwarded).toEqual(['Patchbay-Fwd-x-end']);
  });

  it.each(['message/send', 'message/stream'])(
    'of a 0.3 agent name its extensions to the caller: %s',
    async (method) => {
      const response = await front.call('echo', rpc(method));
      await response.text();
      expect(response.headers.get('x-a2a-extensions')).toBe('https://x.example/a');
    },
  );
});
