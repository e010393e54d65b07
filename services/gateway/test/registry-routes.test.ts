import { BusHeader } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { registeredAgent, RunningFront } from './running-front.js';

let front: RunningFront;
let fault: PatchbayError | undefined;
let received: { card: string; dialect: string; headers: Readonly<Record<string, string>> } | undefined;

beforeEach(async () => {
  fault = undefined;
  received = undefined;
  front = await RunningFront.start({
    settings: { maxCardBytes: 4096 },
    registry: {
      register: async (card, { dialect, delivery }) => {
        if (fault !== undefined) throw fault;
        received = { card: Buffer.from(card).toString(), dialect, headers: delivery.headers };
        // Not in the front's directory: the answer is the service's.
        return registeredAgent('echo-01', 7, { name: 'Echo', extra: { owner_team: 'blue' } });
      },
      deregister: async (agentId) => {
        if (fault !== undefined) throw fault;
        if (agentId !== 'echo-01') throw new PatchbayError('agent_not_found', 'agent not found');
      },
    },
    liveness: {
      heartbeat: async (agentId) => {
        if (fault !== undefined) throw fault;
        if (agentId !== 'echo-01') throw new PatchbayError('agent_not_found', 'agent not found');
        return { agentId, lastSeenMs: Date.UTC(2026, 10, 30, 12, 0, 0, 5) };
      },
    },
  });
});

afterEach(() => front[Symbol.asyncDispose]());

const ECHO_CARD = {
  agent_id: 'echo-01',
  name: 'Echo',
  description: '',
  version: '',
  url: 'http://agent.example:8000/',
  skills: [],
  defaultInputModes: ['text'],
  defaultOutputModes: ['text'],
  protocolVersions: ['1.0'],
  owner_team: 'blue',
  registered_at: '2026-01-01T00:00:07.000Z',
  last_seen: '2026-01-01T00:00:07.000Z',
};

/** Sends a request; the answer as status and body. */
async function ask(
  method: string,
  path: string,
  body?: string | Uint8Array,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const response = await fetch(front.url + path, { method, ...(body === undefined ? {} : { body, headers }) });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}

describe('POST /agents/register', () => {
  it('hands the card over as it came and answers with the stored one', async () => {
    const card = '{ "agent_id":"echo-01", "name":"Echo","url":"http://agent.example:8000/","x":1.0}';
    const reply = await ask('POST', '/agents/register', card, { 'content-type': 'application/json; charset=utf-8' });
    expect(reply).toMatchObject({ status: 200, body: ECHO_CARD });
    expect(Object.keys(reply.body as object)).toEqual(Object.keys(ECHO_CARD));
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    expect(received).toMatchObject({ card, dialect: 'kubemq' });
    expect(received?.headers[BusHeader.traceparent]).toContain(reply.headers.get('x-trace-id'));
  });

  const rows: [ErrorCode, number, string][] = [
    ['parse_error', 400, 'why'],
    ['invalid_argument', 400, 'why'],
    ['permission_denied', 403, 'why'],
    ['agent_limit_reached', 409, 'why'],
    ['request_too_large', 413, 'why'],
    ['store_unavailable', 503, 'why'],
    ['internal', 500, 'internal error'],
  ];
  it.each(rows)('%s is %i', async (code, status, error) => {
    fault = new PatchbayError(code, 'why');
    expect(await ask('POST', '/agents/register', '{}')).toMatchObject({ status, body: { error } });
  });

  it.each([
    ['no body', '', { 'content-type': 'application/json' }, 400, /the body is empty/],
    [
      'another content type',
      '{}',
      { 'content-type': 'text/plain' },
      400,
      /Content-Type is "text\/plain"; send Content-Type: application\/json/,
    ],
    ['a malformed content type', '{}', { 'content-type': 'json' }, 400, /Content-Type is "json"/],
    ['a body over the limit', Buffer.alloc(4097, 0x20), { 'content-type': 'application/json' }, 413, /over 4096 bytes/],
  ])('%s is refused', async (_, body, headers, status, error) => {
    const reply = await ask('POST', '/agents/register', body, headers);
    expect(reply).toMatchObject({ status, body: { error: expect.stringMatching(error) } });
    expect(received).toBeUndefined();
  });

  it('says that the registry is away', async () => {
    await front.bus.close();
    const reply = await ask('POST', '/agents/register', '{}');
    expect(reply.status).toBe(503);
    expect(reply.body).toEqual({ error: expect.any(String) });
  });
});

const skill = (...tags: string[]) => ({ skills: [{ id: 's', name: 'S', description: '', tags }] });

describe('reads', () => {
  beforeEach(() => {
    front.know('echo-01', { name: 'Echo', extra: { owner_team: 'blue' } });
    front.know('translate-01', skill('nlp', 'translate'));
    front.know('summarize-01', skill('nlp'));
    front.know('images-01', skill('images'));
  });

  it.each([
    ['', ['echo-01', 'translate-01', 'summarize-01', 'images-01']],
    ['?skill_tags=translate', ['translate-01']],
    ['?skill_tags=translate%2Cimages', ['translate-01', 'images-01']],
    ['?skill_tags=images,nlp', ['translate-01', 'summarize-01', 'images-01']],
    ['?skill_tags=images&skill_tags=translate', ['translate-01', 'images-01']],
    ['?skill_tags=', ['echo-01', 'translate-01', 'summarize-01', 'images-01']],
    ['?skill_tags=none', []],
    ['?limit=2', ['echo-01', 'translate-01']],
    ['?skill_tags=nlp&limit=1', ['translate-01']],
    ['?limit=0', ['echo-01', 'translate-01', 'summarize-01', 'images-01']],
    ['?limit=-1', ['echo-01', 'translate-01', 'summarize-01', 'images-01']],
    ['?limit=many', ['echo-01', 'translate-01', 'summarize-01', 'images-01']],
  ])('GET /agents%s', async (query, ids) => {
    const { status, body } = await ask('GET', `/agents${query}`);
    expect(status).toBe(200);
    expect((body as { agent_id: string }[]).map((card) => card.agent_id)).toEqual(ids);
  });

  it('GET /agents of an empty registry is an empty array', async () => {
    await using empty = await RunningFront.start();
    expect(await (await fetch(`${empty.url}/agents`)).json()).toEqual([]);
  });

  it('GET /agents/{id} is the whole card, as registered', async () => {
    const body = { ...ECHO_CARD, registered_at: '2026-01-01T00:00:01.000Z', last_seen: '2026-01-01T00:00:01.000Z' };
    expect(await ask('GET', '/agents/echo-01')).toMatchObject({ status: 200, body });
  });

  it('GET /a2a/{id}/.well-known/agent-card.json is the card with the gateway’s address', async () => {
    front.know('full-01', {
      extra: {
        preferredTransport: 'GRPC',
        supportedInterfaces: [
          { url: 'agent:443', protocolBinding: 'GRPC', protocolVersion: '1.0' },
          { url: 'http://[::]:8080/invoke', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        ],
        signatures: [{ protected: 'x', signature: 'y' }],
      },
    });
    const { status, body } = await ask('GET', '/a2a/full-01/.well-known/agent-card.json');
    expect(status).toBe(200);
    const url = `${front.url}/a2a/full-01`;
    expect(body).toMatchObject({
      agent_id: 'full-01',
      url,
      preferredTransport: 'JSONRPC',
      supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    });
    expect(body).not.toHaveProperty('signatures');
    expect(JSON.stringify(body)).not.toMatch(/agent:443|8080|agent\.example/);
  });

  it.each([
    '/agents/nobody',
    '/agents/ECHO-01',
    '/agents/echo%2D01',
    '/agents/__proto__',
    '/agents/',
    '/a2a/nobody/.well-known/agent-card.json',
  ])('GET %s is 404', async (path) => {
    expect(await ask('GET', path)).toMatchObject({ status: 404, body: { error: 'agent not found' } });
  });

  it('answers HEAD without a body', async () => {
    for (const path of ['/agents', '/agents/echo-01', '/.well-known/agent-card.json', '/healthz']) {
      const response = await fetch(front.url + path, { method: 'HEAD' });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('');
    }
  });
});

describe('heartbeat and deregistration', () => {
  it('a heartbeat answers with the union of what clients read, and is visible at once', async () => {
    front.know('echo-01');
    const body = { ok: true, agent_id: 'echo-01', last_seen: '2026-11-30T12:00:00.005Z' };
    expect(await ask('POST', '/agents/heartbeat', '{"agent_id":"echo-01"}')).toMatchObject({ status: 200, body });
    expect((await ask('GET', '/agents/echo-01')).body).toMatchObject({ last_seen: body.last_seen });
  });

  it.each([
    ['POST', '/agents/deregister', '{"agent_id":"echo-01"}'],
    ['DELETE', '/agents/echo-01', undefined],
    ['DELETE', '/agents/echo-01', '{}'],
  ])('%s %s is 200', async (method, path, body) => {
    expect(await ask(method, path, body)).toMatchObject({ status: 200, body: { ok: true } });
  });

  it.each([
    ['POST', '/agents/heartbeat', '{"agent_id":"nobody"}', 400, /^agent not found$/],
    ['POST', '/agents/deregister', '{"agent_id":"nobody"}', 404, /^agent not found$/],
    ['POST', '/agents/heartbeat', '[]', 400, /^the body must be a JSON object$/],
    ['POST', '/agents/deregister', 'null', 400, /^the body must be a JSON object$/],
    ['DELETE', '/agents/nobody', undefined, 404, /^agent not found$/],
    ['DELETE', '/agents/a.%3E', undefined, 404, /^agent not found$/],
    ['POST', '/agents/heartbeat', '{}', 400, /agent_id is required/],
    ['POST', '/agents/deregister', '{}', 400, /agent_id is required/],
    ['POST', '/agents/heartbeat', '{"agent_id":5}', 400, /2-128 characters.*got 5/],
    ['POST', '/agents/heartbeat', '{"agent_id":"a.>"}', 400, /2-128 characters.*got "a\.>"/],
    ['POST', '/agents/heartbeat', '{bad', 400, /not valid JSON/],
    ['POST', '/agents/heartbeat', '{"agent_id":"a1","agent_id":"b1"}', 400, /twice/],
    ['POST', '/agents/deregister', '['.repeat(2000), 400, /nested deeper/],
  ])('%s %s with %s is %i', async (method, path, body, status, error) => {
    expect(await ask(method, path, body)).toMatchObject({ status, body: { error: expect.stringMatching(error) } });
  });

  it.each([
    ['store_unavailable', 503],
    ['permission_denied', 403],
  ] as const)('%s is %i everywhere', async (code, status) => {
    fault = new PatchbayError(code, 'why');
    for (const path of ['/agents/heartbeat', '/agents/deregister']) {
      expect(await ask('POST', path, '{"agent_id":"echo-01"}')).toMatchObject({ status, body: { error: 'why' } });
    }
    expect(await ask('DELETE', '/agents/echo-01')).toMatchObject({ status, body: { error: 'why' } });
  });
});

describe('everything else', () => {
  it.each([
    ['GET', '/a2a/echo-01', 405, 'POST'],
    ['PUT', '/a2a/echo-01', 405, 'POST'],
    ['DELETE', '/a2a/', 405, 'POST'],
    ['POST', '/a2a/echo-01/stream', 405, 'GET'],
    ['PUT', '/agents/echo-01', 405, 'GET, HEAD, DELETE'],
    ['POST', '/agents', 405, 'GET, HEAD'],
    ['OPTIONS', '/a2a/echo-01', 204, 'POST'],
    ['OPTIONS', '/agents', 204, 'GET, HEAD'],
  ])('%s %s is %i', async (method, path, status, allow) => {
    const reply = await ask(method, path);
    expect(reply.status).toBe(status);
    expect(reply.headers.get('allow')).toBe(allow);
  });

  it.each([
    '/',
    '/a2a',
    '//agents',
    '/agents//echo-01',
    '/agents/echo-01/',
    '/a2a/echo-01/',
    '/a2a/a/b/c',
    '/AGENTS',
    '/agents/../healthz2',
  ])('GET %s is a JSON 404 with a trace id', async (path) => {
    const reply = await ask('GET', path);
    expect(reply).toMatchObject({ status: 404, body: { error: expect.any(String) } });
    expect(reply.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
  });

  it('never redirects POST /a2a/', async () => {
    const response = await fetch(`${front.url}/a2a/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"m"}',
      redirect: 'error',
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ id: 1, error: { code: -32600 } });
  });

  it('is 404 when A2A is turned off, but for health and the platform’s card', async () => {
    await using off = await RunningFront.start({ settings: { a2aEnabled: false } });
    const status = async (path: string, init?: RequestInit) => (await fetch(off.url + path, init)).status;
    for (const path of ['/agents', '/agents/echo-01', '/a2a/echo-01', '/a2a/echo-01/.well-known/agent-card.json']) {
      expect(await status(path)).toBe(404);
    }
    expect(await status('/a2a/echo-01', { method: 'POST', body: '{}' })).toBe(404);
    expect(await status('/agents/register', { method: 'POST', body: '{}' })).toBe(404);
    expect(await status('/healthz')).toBe(200);
    expect(await status('/.well-known/agent-card.json')).toBe(200);
  });
});

describe('the platform’s card', () => {
  it('has the name and the address that the client used', async () => {
    expect((await ask('GET', '/.well-known/agent-card.json')).body).toEqual({
      name: 'patchbay',
      description: 'patchbay A2A Gateway',
      version: '0.1.0',
      url: `${front.url}/`,
      skills: [],
      defaultInputModes: ['text'],
      defaultOutputModes: ['text'],
      protocolVersions: ['1.0'],
    });
  });

  it.each([
    ['the public URL', { publicUrl: 'https://gw.example/patchbay' }, 'https://gw.example/patchbay/'],
    ['forwarded headers of a trusted proxy', { trustProxy: ['127.0.0.0/8', '::1'] }, 'https://front.example/'],
    ['not those of a stranger', { trustProxy: ['10.0.0.0/8'] }, undefined],
  ])('follows %s', async (_, settings, url) => {
    await using other = await RunningFront.start({ settings: { ...settings, name: 'kubemq' } });
    const response = await fetch(`${other.url}/.well-known/agent-card.json`, {
      headers: { 'x-forwarded-host': 'front.example', 'x-forwarded-proto': 'https' },
    });
    expect(await response.json()).toMatchObject({
      name: 'kubemq',
      description: 'KubeMQ A2A Gateway',
      url: url ?? `${other.url}/`,
    });
  });
});
