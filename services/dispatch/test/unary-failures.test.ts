import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { BusHeader } from '@patchbay/bus';
import { ByteBudget } from '@patchbay/core';
import type { DispatchOptions } from '@patchbay/dispatch';
import { eventually, freePort, startScriptedAgent } from '@patchbay/testkit';
import type { AgentScript } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { DispatchRig, request, rigWithAgent } from './dispatch-rig.js';
import type { RigWithAgent } from './dispatch-rig.js';

function rigWith(script: AgentScript, options: Partial<DispatchOptions> = {}): Promise<RigWithAgent> {
  return rigWithAgent('echo-01', script, options);
}

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
    expect(error.message).toContain('not valid HTTP/1.1');
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

describe('a large reply', () => {
  test('that finds no room is dropped while it is read, and its room is free afterwards', async () => {
    const budget = new ByteBudget(2_000_000);
    const fill = 'x'.repeat(1_500_000);
    await using world = await rigWith({ kind: 'fixed', body: `{"fill":"${fill}"}` }, { budget });
    const other = budget.claim();
    other.reserve(1_000_000);
    const error = await world.rig.refusal('echo-01', request('message/send'));
    expect(error).toMatchObject({
      code: 'rate_limited',
      message: expect.stringMatching(/PATCHBAY_MAX_BUFFERED_BYTES \(2000000\)/),
    });
    expect(budget.usedBytes).toBe(1_000_000);
    other.release();
    expect((await world.rig.call('echo-01', request('message/send'))).body).toHaveLength(fill.length + 11);
    expect(budget.usedBytes).toBe(0);
  });
});
