import { BusHeader } from '@patchbay/bus';
import { eventually } from '@patchbay/testkit';
import type { DispatchOptions } from '@patchbay/dispatch';
import type { AgentScript, ScriptedEvent } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { partOf, request, rigWithAgent } from './dispatch-rig.js';
import type { RigWithAgent } from './dispatch-rig.js';

const STREAM = request('message/stream', {}, 's1');

const TASK: readonly ScriptedEvent[] = [
  { name: 'task.status', data: { type: 'status_update', payload: { progress: 1 } } },
  { name: 'task.artifact', data: { type: 'artifact', payload: { name: 'ünï☺🎉' } } },
  { name: 'task.done', data: { type: 'done', payload: { final_result: 'ok' } } },
];

function rigWith(script: AgentScript, options: Partial<DispatchOptions> = {}): Promise<RigWithAgent> {
  return rigWithAgent('flow-01', script, options);
}

function partsOf(events: readonly ScriptedEvent[]): unknown[] {
  return events.map(({ name, id, data }) => ({
    ...(name === undefined ? {} : { name }),
    ...(id === undefined ? {} : { id }),
    data: typeof data === 'string' ? data : JSON.stringify(data),
  }));
}

describe('a stream', () => {
  test('passes events in order with names and ids, and ends after the final one', async () => {
    const events = [{ id: '7', data: 'first' }, { data: '' }, ...TASK];
    await using world = await rigWith({ kind: 'stream', events, finally: 'silence' });
    expect(await world.rig.readAll('flow-01', STREAM)).toEqual({ parts: partsOf(events) });
    // The agent kept its side open; ours is closed at once.
    await eventually(() => world.agent.openConnections === 0, { withinMs: 1_000 });
    expect(world.rig.dispatch.inHand()).toBe(0);
    expect(world.rig.dispatch.activeStreams('flow-01')).toBe(0);
  });

  test('drops what the agent says after its final event', async () => {
    await using world = await rigWith({ kind: 'stream', events: [...TASK, { name: 'task.status', data: 'late' }] });
    expect((await world.rig.readAll('flow-01', STREAM)).parts).toEqual(partsOf(TASK));
  });

  test('asks the agent for a stream', async () => {
    await using world = await rigWith({ kind: 'stream', events: TASK });
    await world.rig.readAll('flow-01', STREAM);
    expect(world.agent.requests[0]?.headers.accept).toBe('application/json, text/event-stream');
    expect(world.agent.requests[0]?.body.toString()).toBe(STREAM);
  });

  test("tells the agent's extensions and version with the first part", async () => {
    const headers = { 'a2a-extensions': 'urn:one', 'a2a-version': '1.0' };
    await using world = await rigWith({ kind: 'stream', events: TASK, headers });
    const seen = [];
    for await (const { headers } of world.rig.stream('flow-01', STREAM)) seen.push(headers[BusHeader.a2aExtensions]);
    expect(seen).toEqual(['urn:one', undefined, undefined]);
  });

  test.each<[string, Partial<AgentScript>]>([
    ['CRLF', { lineEnd: '\r\n' }],
    ['a lone CR', { lineEnd: '\r' }],
    ['no space after the colon', { space: false }],
    ['every byte alone', { chunks: 'bytes' }],
    ['every byte alone, CRLF', { chunks: 'bytes', lineEnd: '\r\n' }],
    ['every byte alone, CR', { chunks: 'bytes', lineEnd: '\r' }],
  ])('with %s arrives whole', async (_, variant) => {
    const events = [{ data: 'one\ntwo\n' }, ...TASK];
    await using world = await rigWith({ kind: 'stream', events, ...variant } as AgentScript);
    expect(await world.rig.readAll('flow-01', STREAM)).toEqual({ parts: partsOf(events) });
  });

  test('with lone CRs is not one event late', async () => {
    const events = [{ name: 'task.status', data: 'now' }];
    await using world = await rigWith({ kind: 'stream', events, lineEnd: '\r', finally: 'silence' });
    for await (const part of world.rig.stream('flow-01', STREAM)) {
      expect(partOf(part)).toEqual({ name: 'task.status', data: 'now' });
      break;
    }
  });

  test.each(['message', undefined])('of A2A (events named %s) ends well when the agent ends it', async (name) => {
    const event = { data: { jsonrpc: '2.0', id: 's1', result: { kind: 'status-update', final: true } } };
    const events = [name === undefined ? event : { name, ...event }];
    await using world = await rigWith({ kind: 'stream', events });
    expect(await world.rig.readAll('flow-01', STREAM)).toEqual({ parts: partsOf(events) });
  });

  test('answered by plain JSON becomes one part that says so', async () => {
    const body = '{"jsonrpc":"2.0","id":"s1","error":{"code":-32004,"message":"no streaming"}}';
    await using world = await rigWith({ kind: 'fixed', body });
    expect(await world.rig.readAll('flow-01', STREAM)).toEqual({ parts: [{ content: 'json', data: body }] });
  });
});

describe('a stream that fails', () => {
  test.each<[string, AgentScript, string]>([
    ['an empty event stream', { kind: 'stream', events: [] }, 'agent answered a stream call with an empty body'],
    ['an empty body', { kind: 'empty' }, 'agent answered a stream call with an empty body'],
    ['an empty 204', { kind: 'empty', status: 204 }, 'agent answered a stream call with an empty body'],
    ['HTML', { kind: 'html' }, 'agent answered a stream call with HTML'],
    [
      'gzip',
      { kind: 'stream', events: TASK, headers: { 'content-encoding': 'gzip' } },
      'Content-Encoding gzip was not asked for',
    ],
    [
      'invalid UTF-8',
      {
        kind: 'fixed',
        body: Buffer.from('data: \xff\n\n', 'latin1'),
        headers: { 'content-type': 'text/event-stream' },
      },
      'the event stream is not valid UTF-8',
    ],
  ])('on %s', async (_, script, detail) => {
    await using world = await rigWith(script);
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toEqual([]);
    expect(error).toMatchObject({ code: 'agent_bad_reply', message: detail });
    expect(error?.body).toMatchObject({ id: 's1', error: { code: -32603 } });
  });

  test.each([500, 503, 504, 302])('on HTTP %i, as a unary call does', async (status) => {
    await using world = await rigWith({ kind: 'error', status });
    const { error } = await world.rig.readAll('flow-01', STREAM);
    expect(error?.message).toContain(String(status));
    expect(error?.code).toBe(status === 504 ? 'deadline_exceeded' : 'agent_http_error');
  });

  test('when the agent dies in its middle: what came is kept, and the end is not a clean one', async () => {
    const events = TASK.slice(0, 2);
    await using world = await rigWith({ kind: 'stream', events, finally: 'reset' });
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toEqual(partsOf(events));
    expect(error?.code).toBe('stream_broken');
    expect(error?.body?.error.message).toMatch(/^internal error: stream broken: connection/);
  });

  test('when the agent closes without the end of its chunked body', async () => {
    await using world = await rigWith({
      kind: 'custom',
      handle: (incoming, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: one\n\n', () => incoming.socket.end());
      },
    });
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toEqual([{ data: 'one' }]);
    expect(error?.code).toBe('stream_broken');
  });

  test('when a KubeMQ stream ends without its final event', async () => {
    await using world = await rigWith({ kind: 'stream', events: TASK.slice(0, 2) });
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toHaveLength(2);
    expect(error).toMatchObject({ code: 'stream_broken', message: 'agent ended the stream without a final event' });
  });

  test('when it ends in the middle of an event', async () => {
    const body = 'data: {"whole":1}\n\ndata: {"half":';
    await using world = await rigWith({ kind: 'fixed', body, headers: { 'content-type': 'text/event-stream' } });
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toEqual([{ data: '{"whole":1}' }]);
    expect(error).toMatchObject({
      code: 'stream_broken',
      message: 'agent ended the stream in the middle of an event',
    });
  });

  test.each([
    ['finished', '\n\n'],
    ['never finished', ''],
  ])('when an event is over the limit, %s', async (_, end) => {
    const body = `data: ok\n\ndata: ${'é'.repeat(60_000)}${end}`;
    await using world = await rigWith(
      { kind: 'fixed', body, headers: { 'content-type': 'text/event-stream' } },
      { maxResponseBytes: end === '' ? 50_000 : 100_000 },
    );
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toEqual([{ data: 'ok' }]);
    expect(error?.code).toBe('response_too_large');
  });

  test('when the agent does not answer within the time of the call', async () => {
    await using world = await rigWith({ kind: 'silent' });
    const { error } = await world.rig.readAll('flow-01', STREAM, { timeoutMs: 200 });
    expect(error?.body?.error).toEqual({ code: -32001, message: 'agent timeout: flow-01' });
    await eventually(() => world.agent.openConnections === 0);
  });

  test('but not when it has answered in time and goes on for longer', async () => {
    const events = TASK.map((event) => ({ ...event, delayMs: 200 }));
    await using world = await rigWith({ kind: 'stream', events });
    expect((await world.rig.readAll('flow-01', STREAM, { timeoutMs: 300 })).parts).toHaveLength(3);
  });

  test('when the agent is silent for longer than the idle time', async () => {
    await using world = await rigWith(
      { kind: 'stream', events: TASK.slice(0, 1), finally: 'silence' },
      { streamIdleMs: 300 },
    );
    const { parts, error } = await world.rig.readAll('flow-01', STREAM);
    expect(parts).toHaveLength(1);
    expect(error?.code).toBe('deadline_exceeded');
    expect(error?.body?.error.message).toBe('agent timeout: agent silent for 0.3 s');
    await eventually(() => world.agent.openConnections === 0);
  });

  test("an agent's comments are a sign of life", async () => {
    await using world = await rigWith(
      {
        kind: 'custom',
        handle: async (_incoming, response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          for (let beat = 0; beat < 6; beat += 1) {
            response.write(': still here\n\n');
            await new Promise((resolve) => {
              setTimeout(resolve, 100);
            });
          }
          response.end('data: done\n\n');
        },
      },
      { streamIdleMs: 300 },
    );
    expect(await world.rig.readAll('flow-01', STREAM)).toEqual({ parts: [{ data: 'done' }] });
  });
});
