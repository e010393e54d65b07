import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { eventually, freePort, PatchbayProcess } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { echo, failing, oversize, slow, startKubemqAgent, streaming } from '../support/kubemq-agents.js';
import type { KubemqAgent } from '../support/kubemq-agents.js';

// What clients of KubeMQ's A2A gateway rely on, through real HTTP against a real node in KubeMQ's profile.

let node: PatchbayProcess;
let nextId = 0;

beforeAll(async () => {
  node = await PatchbayProcess.start({ env: { PATCHBAY_PROFILE: 'kubemq' } });
});

afterAll(async () => {
  await node.stop();
});

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- answers are what is under test
  readonly json: any;
}

async function http(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(node.url + path, {
    method,
    redirect: 'manual',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

function freshId(kind: string): string {
  nextId += 1;
  return `${kind}-${nextId}`;
}

async function register(agentId: string, url: string, extra: Record<string, unknown> = {}): Promise<Reply> {
  const reply = await http('POST', '/agents/register', { agent_id: agentId, name: `Agent ${agentId}`, url, ...extra });
  return reply;
}

async function registered(kind: string, agent: KubemqAgent, extra?: Record<string, unknown>): Promise<string> {
  const agentId = freshId(kind);
  expect((await register(agentId, agent.url, extra)).status).toBe(200);
  return agentId;
}

function rpc(method: string, params: unknown = {}, id: unknown = 1): Record<string, unknown> {
  return { jsonrpc: '2.0', id, method, params };
}

describe('registry', () => {
  test('a registration answers 200 with the whole card', async () => {
    const agentId = freshId('reg');
    const { status, json } = await register(agentId, 'http://localhost:9/');
    expect(status).toBe(200);
    expect(json).toMatchObject({
      agent_id: agentId,
      description: '',
      version: '',
      skills: [],
      defaultInputModes: ['text'],
      defaultOutputModes: ['text'],
      protocolVersions: ['1.0'],
    });
    expect(json.registered_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(json.last_seen).toMatch(/Z$/);
    expect((await http('GET', `/agents/${agentId}`)).json).toEqual(json);
  });

  test('a re-registration keeps registered_at and its place in the list, and replaces the rest', async () => {
    const [first, second] = [freshId('order'), freshId('order')];
    const before = await register(first, 'http://localhost:9/', { description: 'old', custom: 1 });
    await register(second, 'http://localhost:9/');
    const after = await register(first, 'http://localhost:9/', { version: '2' });
    expect(after.json.registered_at).toBe(before.json.registered_at);
    expect(after.json.last_seen >= before.json.last_seen).toBe(true);
    expect(after.json.description).toBe('');
    const ids = ((await http('GET', '/agents')).json as { agent_id: string }[]).map((card) => card.agent_id);
    expect(ids.indexOf(first)).toBeLessThan(ids.indexOf(second));
  });

  test('unknown members of a card are kept, what the server owns is not taken from the client', async () => {
    const agentId = freshId('extra');
    const reply = await register(agentId, 'http://localhost:9/', {
      'x-team': { a: [1] },
      registered_at: '1999-01-01T00:00:00Z',
      last_seen: 'never',
    });
    expect(reply.json['x-team']).toEqual({ a: [1] });
    expect(reply.json.registered_at > '2020').toBe(true);
  });

  const card = { agent_id: 'ok-agent', name: 'n', url: 'http://localhost:1/' };
  const violations: [string, unknown, RegExp][] = [
    ['no agent_id', { ...card, agent_id: undefined }, /agent_id/],
    ['upper case', { ...card, agent_id: 'My-Agent' }, /agent_id.*My-Agent/],
    ['one character', { ...card, agent_id: 'a' }, /agent_id/],
    ['129 characters', { ...card, agent_id: 'a'.repeat(129) }, /agent_id/],
    ['a dot', { ...card, agent_id: 'a..b' }, /agent_id/],
    ['a wildcard', { ...card, agent_id: 'a>' }, /agent_id/],
    ['a star', { ...card, agent_id: '*' }, /agent_id/],
    ['a lone hyphen', { ...card, agent_id: '-' }, /agent_id/],
    ['a prototype', { ...card, agent_id: '__proto__' }, /agent_id/],
    ['a space', { ...card, agent_id: 'a b' }, /agent_id/],
    ['no name', { ...card, name: undefined }, /name/],
    ['an empty name', { ...card, name: '' }, /name/],
    ['257 characters of name', { ...card, name: 'n'.repeat(257) }, /name.*256/],
    ['no url', { ...card, url: undefined }, /url/],
    ['a relative url', { ...card, url: '/relative/path' }, /url/],
    ['another scheme', { ...card, url: 'ftp://host/' }, /url.*http/],
    ['2049 characters of url', { ...card, url: `http://h/${'u'.repeat(2049)}` }, /url.*2048/],
    ['a long description', { ...card, description: 'd'.repeat(2049) }, /description.*2048/],
    ['a long version', { ...card, version: 'v'.repeat(65) }, /version.*64/],
    ['a skill without id', { ...card, skills: [{ name: 'x' }] }, /skills\[0\]\.id/],
    ['a skill without name', { ...card, skills: [{ id: 'x' }] }, /skills\[0\]\.name/],
    ['skills that are no array', { ...card, skills: {} }, /skills/],
    ['tags that are no strings', { ...card, skills: [{ id: 'x', name: 'x', tags: [1] }] }, /tags/],
    ['a name of another type', { ...card, name: 5 }, /name/],
    ['an array', [card], /object/],
    ['no JSON', '{"agent_id":', /JSON/],
    ['a member given twice', '{"agent_id":"ok-agent","agent_id":"ok-agent","name":"n","url":"http://h/"}', /agent_id/],
    ['U+0000', '{"agent_id":"ok-agent","name":"a\\u0000b","url":"http://h/"}', /name/],
    ['a lone surrogate', '{"agent_id":"ok-agent","name":"a\\ud800b","url":"http://h/"}', /name/],
    ['deep nesting', `{"agent_id":"ok-agent","name":"n","url":"http://h/","x":${'['.repeat(100_000)}`, /deep|nest/],
  ];
  test.each(violations)('%s is a 400 that says so and stores nothing', async (_name, body, message) => {
    const reply = await http('POST', '/agents/register', body);
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatch(message);
    expect((await http('GET', '/agents/ok-agent')).status).toBe(404);
  });

  test('a card over the limit is a 413', async () => {
    const reply = await http('POST', '/agents/register', { ...card, x: 'y'.repeat(300_000) });
    expect(reply.status).toBe(413);
    expect(reply.json.error).toMatch(/262144/);
  });

  test('lists filter by any tag, comma encoded or not, and limit afterwards', async () => {
    const skill = (tag: string): unknown[] => [{ id: 's', name: 's', description: '', tags: [tag] }];
    const [a, b, c] = [freshId('tag'), freshId('tag'), freshId('tag')];
    await register(a, 'http://localhost:9/', { skills: skill('tag-red') });
    await register(b, 'http://localhost:9/', { skills: skill('tag-blue') });
    await register(c, 'http://localhost:9/', { skills: skill('tag-red') });
    const ids = async (query: string): Promise<string[]> =>
      ((await http('GET', `/agents?${query}`)).json as { agent_id: string }[]).map((entry) => entry.agent_id);
    expect(await ids('skill_tags=tag-red')).toEqual([a, c]);
    expect(await ids('skill_tags=tag-red%2Ctag-blue')).toEqual([a, b, c]);
    expect(await ids('skill_tags=tag-red,tag-blue&limit=2')).toEqual([a, b]);
    expect(await ids('skill_tags=none-such')).toEqual([]);
    expect((await ids('limit=2')).length).toBe(2);
    expect((await ids('limit=0')).length).toBeGreaterThan(2);
    expect((await ids('limit=abc')).length).toBeGreaterThan(2);
  });

  test('a heartbeat moves last_seen on', async () => {
    const agentId = freshId('beat');
    const before = await register(agentId, 'http://localhost:9/');
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    const beat = await http('POST', '/agents/heartbeat', { agent_id: agentId });
    expect(beat.status).toBe(200);
    expect(beat.json).toMatchObject({ ok: true, agent_id: agentId });
    expect(beat.json.last_seen > before.json.last_seen).toBe(true);
    expect((await http('GET', `/agents/${agentId}`)).json.last_seen).toBe(beat.json.last_seen);
  });

  test('a heartbeat of an unknown agent or without an id is a 400', async () => {
    const unknown = await http('POST', '/agents/heartbeat', { agent_id: 'nobody-here' });
    expect([unknown.status, unknown.json]).toEqual([400, { error: 'agent not found' }]);
    expect((await http('POST', '/agents/heartbeat', {})).status).toBe(400);
    expect((await http('POST', '/agents/heartbeat', 'x')).status).toBe(400);
  });

  test('both deregistrations take effect at once, and are a 404 the second time', async () => {
    for (const leave of [
      (id: string) => http('POST', '/agents/deregister', { agent_id: id }),
      (id: string) => http('DELETE', `/agents/${id}`),
    ]) {
      const agentId = freshId('leave');
      await register(agentId, 'http://localhost:9/');
      const left = await leave(agentId);
      expect([left.status, left.json]).toEqual([200, { ok: true }]);
      const gone = await http('GET', `/agents/${agentId}`);
      expect([gone.status, gone.json]).toEqual([404, { error: 'agent not found' }]);
      const again = await leave(agentId);
      expect([again.status, again.json]).toEqual([404, { error: 'agent not found' }]);
      expect((await http('POST', `/a2a/${agentId}`, rpc('message/send'))).json.error.code).toBe(-32002);
    }
    expect((await http('POST', '/agents/deregister', {})).status).toBe(400);
  });

  test('a new registration after leaving is a new one', async () => {
    const agentId = freshId('again');
    const before = await register(agentId, 'http://localhost:9/');
    await http('DELETE', `/agents/${agentId}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    expect((await register(agentId, 'http://localhost:9/')).json.registered_at > before.json.registered_at).toBe(true);
  });

  test('the platform card and the card of an agent', async () => {
    const platform = await http('GET', '/.well-known/agent-card.json');
    expect(platform.json).toMatchObject({
      name: 'kubemq',
      skills: [],
      defaultInputModes: ['text'],
      defaultOutputModes: ['text'],
      protocolVersions: ['1.0'],
    });
    expect(platform.json.agent_id).toBeUndefined();
    const agentId = freshId('card');
    await register(agentId, 'http://localhost:9/');
    const card = await http('GET', `/a2a/${agentId}/.well-known/agent-card.json`);
    expect(card.status).toBe(200);
    expect(card.json.agent_id).toBe(agentId);
    expect(card.json.url).toBe(`${node.url}/a2a/${agentId}`);
    expect((await http('GET', '/a2a/nobody-here/.well-known/agent-card.json')).status).toBe(404);
  });

  test('fifty register and deregister pairs and a hundred heartbeats in a row all succeed', async () => {
    for (let n = 0; n < 50; n += 1) {
      expect((await register(`pair-${n}`, 'http://localhost:9/')).status).toBe(200);
      expect((await http('DELETE', `/agents/pair-${n}`)).status).toBe(200);
    }
    const agentId = freshId('beats');
    await register(agentId, 'http://localhost:9/');
    for (let n = 0; n < 100; n += 1) {
      expect((await http('POST', '/agents/heartbeat', { agent_id: agentId })).status).toBe(200);
    }
  });
});

describe('calls', () => {
  test('a call reaches the agent byte for byte and its reply comes back', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('echo', agent);
    const body =
      '{ "jsonrpc":"2.0",  "id":"q1","method":"message/send","params":{"message":{"text":"h\\u00e9 \u{1F600}"}} }';
    const reply = await http('POST', `/a2a/${agentId}`, body, { 'content-type': 'application/json; charset=utf-8' });
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    expect(reply.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
    expect(reply.json).toEqual({
      jsonrpc: '2.0',
      id: 'q1',
      result: { echo: { message: { text: 'hé \u{1F600}' } }, method: 'message/send' },
    });
    expect(agent.received[0]?.body).toBe(body);
    expect(agent.received[0]?.headers['content-type']).toBe('application/json');
  });

  test.each([[1], ['1'], [null], [1_767_225_600_000], ['st09']])('id %j is echoed with value and type', async (id) => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('ids', agent);
    expect((await http('POST', `/a2a/${agentId}`, rpc('message/send', {}, id))).json.id).toStrictEqual(id);
    expect((await http('POST', '/a2a/nobody-here', rpc('message/send', {}, id))).json).toStrictEqual({
      jsonrpc: '2.0',
      id,
      error: { code: -32002, message: 'agent not found: nobody-here' },
    });
  });

  test('a notification is forwarded and answered without a body', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('notify', agent);
    const reply = await http('POST', `/a2a/${agentId}`, { jsonrpc: '2.0', method: 'message/send' });
    expect([reply.status, reply.text]).toEqual([202, '']);
    await eventually(() => agent.received.length === 1);
  });

  test('any method is forwarded', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('method', agent);
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/send', 'my/own', 'constructor']) {
      expect((await http('POST', `/a2a/${agentId}`, rpc(method))).json.result.method).toBe(method);
    }
  });

  const refused: [string, string, unknown, Record<string, string>, number, unknown, RegExp][] = [
    ['bad JSON', '/a2a/nobody-here', '{"jsonrpc":', {}, -32700, null, /^parse error: invalid JSON/],
    [
      'another type',
      '/a2a/nobody-here',
      JSON.stringify(rpc('m')),
      { 'content-type': 'text/plain' },
      -32700,
      null,
      /text\/plain/,
    ],
    ['a batch', '/a2a/nobody-here', [rpc('m')], {}, -32600, null, /batch/],
    [
      'another version of JSON-RPC',
      '/a2a/nobody-here',
      { jsonrpc: '1.0', id: 7, method: 'm' },
      {},
      -32600,
      7,
      /^invalid request: invalid jsonrpc version/,
    ],
    [
      'no method',
      '/a2a/nobody-here',
      { jsonrpc: '2.0', id: 'x' },
      {},
      -32600,
      'x',
      /^invalid request: missing method field/,
    ],
    ['an id outside the pattern', '/a2a/INVALID_ID', rpc('m', {}, 5), {}, -32600, 5, /a-z/],
    ['an encoded dot', '/a2a/a%2Eb', rpc('m', {}, 5), {}, -32600, 5, /a-z/],
    ['an encoded wildcard', '/a2a/%3E%3E', rpc('m', {}, 5), {}, -32600, 5, /a-z/],
    ['an unknown agent', '/a2a/nobody-here', rpc('m', {}, 9), {}, -32002, 9, /^agent not found: nobody-here$/],
    ['an empty id', '/a2a/', rpc('m', {}, 3), {}, -32600, 3, /agent/],
    [
      'a depth bomb',
      '/a2a/nobody-here',
      `{"jsonrpc":"2.0","id":1,"method":"m","params":${'['.repeat(100_000)}`,
      {},
      -32700,
      null,
      /parse error/,
    ],
  ];
  test.each(refused)('%s is a JSON-RPC error over HTTP 200', async (_name, path, body, headers, code, id, message) => {
    const reply = await http('POST', path, body, headers);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    expect(reply.json.id).toStrictEqual(id);
    expect(reply.json.error.code).toBe(code);
    expect(reply.json.error.message).toMatch(message);
  });

  test('GET on an agent is a 405 that allows POST', async () => {
    const reply = await http('GET', '/a2a/whoever');
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST']);
  });

  const upstream: [string, number, number, RegExp][] = [
    ['502', 502, -32603, /unavailable|502/],
    ['503', 503, -32603, /unavailable|503/],
    ['500', 500, -32603, /500/],
    ['400', 400, -32603, /400/],
    ['504', 504, -32001, /timeout|504/],
    ['302', 302, -32603, /302/],
  ];
  test.each(upstream)('an agent that answers HTTP %s', async (_name, status, code, message) => {
    await using agent = await startKubemqAgent(failing(status));
    const agentId = await registered('failing', agent);
    const reply = await http('POST', `/a2a/${agentId}`, rpc('message/send', {}, 4));
    expect([reply.status, reply.json.id, reply.json.error.code]).toEqual([200, 4, code]);
    expect(reply.json.error.message).toMatch(message);
  });

  test("an agent's own JSON-RPC error is relayed as it is", async () => {
    const error = { jsonrpc: '2.0', id: 1, error: { code: -32000, message: 'mine', data: { a: 1 } } };
    await using agent = await startKubemqAgent((_rpc, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(error));
    });
    const agentId = await registered('app-error', agent);
    expect((await http('POST', `/a2a/${agentId}`, rpc('message/send'))).json).toEqual(error);
  });

  test('an agent that is not there is unreachable', async () => {
    const agentId = freshId('down');
    await register(agentId, `http://localhost:${await freePort()}/`);
    const reply = await http('POST', `/a2a/${agentId}`, rpc('message/send'));
    expect(reply.json.error.code).toBe(-32603);
    expect(reply.json.error.message).toBe('internal error: agent unreachable: connection refused');
  });

  test('a reply over 10 MB is refused before its content is looked at', async () => {
    await using agent = await startKubemqAgent(oversize(20 * 1024 * 1024));
    const agentId = await registered('big', agent);
    const reply = await http('POST', `/a2a/${agentId}`, rpc('message/send'));
    expect(reply.json.error.code).toBe(-32603);
    expect(reply.json.error.message).toMatch(/too large/);
  });

  test('a request over 10 MB is refused, one of 5 MB arrives whole', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('large', agent);
    const tooLarge = await http('POST', `/a2a/${agentId}`, rpc('message/send', { x: 'y'.repeat(11_000_000) }));
    expect([tooLarge.status, tooLarge.json.error.code]).toEqual([200, -32600]);
    const large = await http('POST', `/a2a/${agentId}`, rpc('message/send', { x: 'y'.repeat(5_000_000) }));
    expect(large.json.result.echo.x.length).toBe(5_000_000);
  });

  test('the caller is answered at its own timeout', async () => {
    await using agent = await startKubemqAgent(slow(2_000));
    const agentId = await registered('slow', agent);
    const start = performance.now();
    const reply = await http('POST', `/a2a/${agentId}`, rpc('message/send', { configuration: { timeout: 1 } }));
    const elapsedMs = performance.now() - start;
    expect(reply.json.error).toEqual({ code: -32001, message: `agent timeout: ${agentId}` });
    expect(elapsedMs).toBeGreaterThan(950);
    expect(elapsedMs).toBeLessThan(1_800);
    const patient = await http('POST', `/a2a/${agentId}`, rpc('message/send', { configuration: { timeout: 99_999 } }));
    expect(patient.json.result).toBeDefined();
  });

  test('headers: X-* and the caller id arrive, credentials do not', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('headers', agent);
    await http('POST', `/a2a/${agentId}`, rpc('message/send'), {
      'X-Custom-Header': 'one',
      'X-Request-ID': 'two',
      'X-KubeMQ-Caller-ID': 'forged',
      'X-Forwarded-For': '1.2.3.4',
      Authorization: 'Bearer t',
      'Proxy-Authorization': 'Basic t',
      Cookie: 'a=b',
      'X-My-Authorization': 'no',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00',
      'A2A-Version': '0.3',
    });
    const headers = agent.received[0]?.headers ?? {};
    expect(headers).toMatchObject({
      'x-custom-header': 'one',
      'x-request-id': 'two',
      'x-kubemq-caller-id': 'anonymous',
      'a2a-version': '0.3',
    });
    expect(headers.traceparent).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-/);
    expect(Object.keys(headers).filter((name) => /authorization|cookie|x-forwarded/.test(name))).toEqual([]);
  });

  test('a hundred calls at once succeed and the next is refused at once', async () => {
    await using agent = await startKubemqAgent(slow(1_500));
    const agentId = await registered('busy', agent);
    const calls = Array.from({ length: 100 }, () => http('POST', `/a2a/${agentId}`, rpc('message/send')));
    await eventually(() => agent.received.length === 100, { withinMs: 5_000, what: '100 calls at the agent' });
    const start = performance.now();
    const refusedCall = await http('POST', `/a2a/${agentId}`, rpc('message/send'));
    expect(performance.now() - start).toBeLessThan(500);
    expect(refusedCall.json.error).toEqual({ code: -32603, message: 'internal error: concurrency limit exceeded' });
    expect((await Promise.all(calls)).filter((reply) => reply.json.result !== undefined).length).toBe(100);
    expect((await http('POST', `/a2a/${agentId}`, rpc('message/send'))).json.result).toBeDefined();
  });

  test('two agents may share one URL', async () => {
    await using agent = await startKubemqAgent(echo);
    const [one, two] = [await registered('shared', agent), await registered('shared', agent)];
    await http('DELETE', `/agents/${one}`);
    expect((await http('POST', `/a2a/${two}`, rpc('m'))).json.result).toBeDefined();
  });

  test('an h2c upgrade, as Java sends it, is answered as an ordinary call', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('h2c', agent);
    const body = JSON.stringify(rpc('m'));
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(`${node.url}/a2a/${agentId}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          connection: 'Upgrade, HTTP2-Settings',
          upgrade: 'h2c',
          'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
          'content-length': Buffer.byteLength(body),
        },
      });
      request.on('response', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', reject);
      request.end(body);
    });
    expect(status).toBe(200);
    expect(Object.keys(agent.received[0]?.headers ?? {})).not.toContain('http2-settings');
  });
});

/** Reads one raw response until the server closes or `enough` says so. */
async function raw(path: string, body: string, enough: (text: string) => boolean, method = 'POST'): Promise<string[]> {
  const { hostname, port } = new URL(node.url);
  const socket = connect(Number(port), hostname);
  const chunks: string[] = [];
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await new Promise<void>((resolve, reject) => {
    socket.setTimeout(20_000, () => reject(new Error(`no end of the response; so far: ${chunks.join('')}`)));
    socket.on('data', (chunk) => {
      chunks.push(chunk.toString());
      if (enough(chunks.join(''))) resolve();
    });
    socket.on('end', resolve);
    socket.on('error', reject);
  });
  socket.destroy();
  return chunks;
}

describe('streams', () => {
  test('events arrive in order, each in one write, in the envelope of KubeMQ', async () => {
    await using agent = await startKubemqAgent(streaming(30));
    const agentId = await registered('stream', agent);
    const chunks = await raw(`/a2a/${agentId}`, JSON.stringify(rpc('message/stream')), (text) =>
      text.endsWith('0\r\n\r\n'),
    );
    const text = chunks.join('');
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).toMatch(/content-type: text\/event-stream\r\n/i);
    expect(text).toMatch(/cache-control: no-cache\r\n/i);
    expect(text).toMatch(/connection: keep-alive\r\n/i);
    expect(text).toMatch(/x-accel-buffering: no\r\n/i);
    const frames = text.match(/event: [^\n]*\ndata: [^\n]*\n\n/g) ?? [];
    expect(frames.map((frame) => frame.split('\n')[0])).toEqual([
      'event: task.status',
      'event: task.status',
      'event: task.status',
      'event: task.done',
    ]);
    for (const frame of frames) expect(chunks.filter((chunk) => chunk.includes(frame)).length).toBe(1);
    const first = JSON.parse(frames[0]?.split('\n')[1]?.slice(6) ?? '');
    expect(first).toEqual({
      type: 'status_update',
      payload: { progress: 1, total: 3, type: 'status_update', payload: { progress: 1, total: 3 } },
    });
    const last = JSON.parse(frames[3]?.split('\n')[1]?.slice(6) ?? '');
    expect(last.type).toBe('done');
    expect(last.payload.payload.event_count).toBe(3);
  });

  test('GET …/stream sends the agent a message/stream', async () => {
    await using agent = await startKubemqAgent(streaming());
    const agentId = await registered('get-stream', agent);
    const chunks = await raw(`/a2a/${agentId}/stream`, '', (text) => text.includes('task.done'), 'GET');
    expect(chunks.join('')).toMatch(/event: task\.status\n/);
    expect(JSON.parse(agent.received[0]?.body ?? '')).toMatchObject({
      jsonrpc: '2.0',
      method: 'message/stream',
      params: {},
    });
  });

  test('when the client leaves, the agent sees it and the gauge falls back', async () => {
    await using agent = await startKubemqAgent(streaming(200, 50));
    const agentId = await registered('leaver', agent);
    const gauge = async (): Promise<number> => {
      const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
      const line = metrics.match(new RegExp(`^kubemq_a2a_sse_streams_active\\{agent_id="${agentId}"\\} (\\S+)$`, 'm'));
      return Number(line?.[1] ?? 'NaN');
    };
    const controller = new AbortController();
    const response = await fetch(`${node.url}/a2a/${agentId}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(rpc('message/stream')),
      signal: controller.signal,
    });
    await response.body?.getReader().read();
    expect(await gauge()).toBe(1);
    controller.abort();
    await eventually(() => agent.hangUps() === 1, { withinMs: 1_000, what: 'the agent seeing the client leave' });
    await eventually(async () => (await gauge()) === 0, { withinMs: 1_000, what: 'the gauge at 0' });
  });

  test('an agent that dies in a stream ends it with an error event', async () => {
    await using agent = await startKubemqAgent((_rpc, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: task.status\ndata: {"type":"status_update","payload":{"progress":1}}\n\n', () => {
        response.destroy();
      });
    });
    const agentId = await registered('dying', agent);
    const text = (
      await raw(`/a2a/${agentId}`, JSON.stringify(rpc('message/stream')), (all) => all.endsWith('0\r\n\r\n'))
    ).join('');
    const error = text.match(/event: task\.error\ndata: ([^\n]*)\n\n/)?.[1];
    expect(JSON.parse(error ?? '{}')).toMatchObject({ type: 'error', payload: { code: -32603, type: 'error' } });
  });

  test('a stream call that fails before its first event is an ordinary JSON-RPC error', async () => {
    const reply = await http('POST', '/a2a/nobody-here', rpc('message/stream', {}, 's1'));
    expect([reply.status, reply.json.id, reply.json.error.code]).toEqual([200, 's1', -32002]);
    await using agent = await startKubemqAgent((_rpc, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end();
    });
    const agentId = await registered('empty', agent);
    const empty = await http('POST', `/a2a/${agentId}`, rpc('message/stream', {}, 's2'));
    expect(empty.json.id).toBe('s2');
    expect(empty.json.error.message).toMatch(/empty/);
  });

  test('an agent that does not stream is relayed', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('no-stream', agent);
    const reply = await http('POST', `/a2a/${agentId}`, rpc('message/stream', {}, 's3'));
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    expect(reply.json).toMatchObject({ id: 's3', result: { method: 'message/stream' } });
  });
});

describe('metrics', () => {
  test('a request is counted before its answer is sent, and lines are plain', async () => {
    await using agent = await startKubemqAgent(echo);
    const agentId = await registered('metric', agent);
    const count = async (method: string): Promise<number> => {
      const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
      const found = metrics
        .split('\n')
        .map((line) => /^(\w+)(?:\{([^}]*)\})?\s+([0-9.eE+-]+)$/.exec(line))
        .find(
          (line) =>
            line?.[1] === 'kubemq_a2a_requests_total' &&
            line[2]?.includes(`"${agentId}"`) &&
            line[2]?.includes(`"${method}"`),
        );
      return Number(found?.[3] ?? 0);
    };
    for (let n = 1; n <= 3; n += 1) {
      await http('POST', `/a2a/${agentId}`, rpc('message/send'));
      expect(await count('message/send')).toBe(n);
    }
    await http('POST', `/a2a/${agentId}`, rpc('my/own'));
    expect(await count('unknown')).toBe(1);
    await http('POST', '/a2a/nobody-here', rpc('message/send'));
    const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
    expect(metrics).not.toContain('nobody-here');
    expect(metrics).toMatch(/^process_resident_memory_bytes \d/m);
    expect(metrics).toMatch(/^kubemq_a2a_requests_total\{agent_id="[^"]*",method="[^"]*"\} \d+$/m);
  });
});
