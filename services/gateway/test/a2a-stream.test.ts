import { encodeJsonRpcError } from '@patchbay/a2a';
import { BusHeader } from '@patchbay/bus';
import type { Exchange } from '@patchbay/bus';
import { eventually } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { httpChunks, RawClient, rawPost } from './raw-client.js';
import { rpc, RunningFront } from './running-front.js';

const STREAM = rpc('message/stream');
const KEEPALIVE_MS = 150;

let front: RunningFront;

beforeAll(async () => {
  front = await RunningFront.start({ settings: { keepaliveSeconds: KEEPALIVE_MS / 1000 } });
});

afterAll(() => front[Symbol.asyncDispose]());

/** Writes events as dispatch does: name and data. */
async function emit(
  exchange: Exchange,
  ...events: readonly [name: string | undefined, data: string, id?: string][]
): Promise<void> {
  for (const [name, data, id] of events) {
    await exchange.write(Buffer.from(data), {
      ...(name === undefined ? {} : { [BusHeader.eventName]: name }),
      ...(id === undefined ? {} : { [BusHeader.eventId]: id }),
    });
  }
}

/** Resolves when the caller is gone. */
function gone(exchange: Exchange): Promise<void> {
  return new Promise((resolve) => {
    exchange.signal.addEventListener('abort', () => resolve());
    if (exchange.signal.aborted) resolve();
  });
}

/** What a whole stream looks like on the wire: the payload of each write. */
async function writesOf(
  agentId: string,
  request = rawPost(`/a2a/${agentId}`, STREAM, 'Connection: close\r\n'),
): Promise<string[]> {
  using client = await RawClient.send(front.url, request);
  await client.closed();
  return httpChunks(client.body);
}

/** An event of KubeMQ's in the envelope that all of its clients can read. */
function hybrid(name: string, type: string, payload: Record<string, unknown>): string {
  return `event: ${name}\ndata: ${JSON.stringify({ type, payload: { ...payload, type, payload } })}\n\n`;
}

it('keeps every digit of a number in KubeMQ’s events', async () => {
  front.serve('precise', async (exchange) => {
    await emit(exchange, ['task.done', '{"type":"done","payload":{"n":12345678901234567890}}']);
    exchange.end();
  });
  const text = await (await front.call('precise', STREAM)).text();
  expect(text).toBe(
    'event: task.done\ndata: {"type":"done","payload":{"n":12345678901234567890,"type":"done","payload":{"n":12345678901234567890}}}\n\n',
  );
});

describe('a KubeMQ stream', () => {
  it('goes out event by event, one write each, in the hybrid envelope, and ends at the final event', async () => {
    let isCancelled = false;
    front.serve('tasks', async (exchange) => {
      await emit(
        exchange,
        ['task.status', '{"type":"status_update","payload":{"progress":1,"total":3}}', '42'],
        ['task.artifact', '{"type":"artifact","payload":{"name":"a","data":[1]}}'],
        ['task.custom', '{"progress":2}'],
        ['task.done', '{"type":"done","payload":{"final_result":"ok"}}'],
      );
      await gone(exchange);
      isCancelled = true;
    });
    using client = await RawClient.send(front.url, rawPost('/a2a/tasks', STREAM));
    await client.received('\r\n0\r\n\r\n');
    const head = client.text.slice(0, client.text.indexOf('\r\n\r\n'));
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(head).toMatch(/^Content-Type: text\/event-stream\r$/m);
    expect(head).toMatch(/^Cache-Control: no-cache\r$/m);
    expect(head).toMatch(/^Connection: keep-alive\r$/m);
    expect(head).toMatch(/^X-Accel-Buffering: no\r$/m);
    expect(head).toMatch(/^X-Trace-Id: [0-9a-f]{32}\r$/m);
    expect(head).not.toMatch(/content-encoding|content-length/i);
    expect(httpChunks(client.body)).toEqual([
      hybrid('task.status', 'status_update', { progress: 1, total: 3 }),
      hybrid('task.artifact', 'artifact', { name: 'a', data: [1] }),
      hybrid('task.custom', 'custom', { progress: 2 }),
      hybrid('task.done', 'done', { final_result: 'ok' }),
    ]);
    await eventually(() => isCancelled, { what: 'what follows the final event being refused' });
  });

  it('is not compressed, whatever the client accepts', async () => {
    front.serve('plain', async (exchange) => emit(exchange, ['task.done', '{"type":"done","payload":{}}']));
    const response = await front.call('plain', STREAM, { 'accept-encoding': 'gzip, br' });
    expect(response.headers.get('content-encoding')).toBeNull();
    expect(await response.text()).toContain('event: task.done\n');
  });

  it('relays data that is no JSON untouched', async () => {
    front.serve('text', async (exchange) => {
      await emit(exchange, ['task.status', 'half done'], ['task.done', '{}']);
    });
    expect(await writesOf('text')).toEqual([
      'event: task.status\ndata: half done\n\n',
      hybrid('task.done', 'done', {}),
    ]);
  });

  it('says with task.error that it broke', async () => {
    front.serve('breaks', async (exchange) => {
      await emit(exchange, ['task.status', '{"type":"status_update","payload":{"progress":1}}']);
      exchange.fail('stream_broken', 'the agent closed the connection');
    });
    const message = 'internal error: stream broken: the agent closed the connection';
    expect((await writesOf('breaks')).at(-1)).toBe(hybrid('task.error', 'error', { code: -32603, message }));
  });

  it('says so in the words of dispatch', async () => {
    const body = encodeJsonRpcError({ code: 'deadline_exceeded', idJson: '1', detail: 'idle', version: undefined });
    front.serve('idle', async (exchange) => {
      await emit(exchange, ['task.status', '{"type":"status_update","payload":{}}']);
      exchange.fail('deadline_exceeded', 'x', body);
    });
    const error = { code: -32001, message: 'agent timeout: idle' };
    expect((await writesOf('idle')).at(-1)).toBe(hybrid('task.error', 'error', error));
  });

  it('is opened by GET …/stream with a made-up message/stream', async () => {
    let sent: unknown;
    front.serve('got', async (exchange, delivery) => {
      sent = JSON.parse(Buffer.from(delivery.body).toString());
      expect(delivery.headers).toMatchObject({ 'Patchbay-Fwd-x-custom': 'yes' });
      await emit(exchange, ['task.done', '{"type":"done","payload":{}}']);
    });
    const request = 'GET /a2a/got/stream HTTP/1.1\r\nHost: x\r\nX-Custom: yes\r\nConnection: close\r\n\r\n';
    expect(await writesOf('got', request)).toEqual([hybrid('task.done', 'done', {})]);
    expect(sent).toEqual({ jsonrpc: '2.0', id: expect.any(String), method: 'message/stream', params: {} });
    for (const [id, code] of [
      ['nobody', -32002],
      ['BAD', -32600],
    ] as const) {
      const response = await fetch(`${front.url}/a2a/${id}/stream`);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ id: null, error: { code } });
    }
  });
});

describe('an A2A stream', () => {
  const first = '{"jsonrpc":"2.0","id":1,"result":{"kind":"task"}}';

  it('passes through event by event, untouched', async () => {
    front.serve('a2a', async (exchange) => {
      await emit(
        exchange,
        [undefined, first],
        [undefined, '{ "n": 1.0,\n"m":2 }', '7'],
        ['other', 'x', 'id-1'],
        ['task.status', first],
        [undefined, 'cr\rcrlf\r\nlf\nend'],
      );
      exchange.end();
    });
    expect(await writesOf('a2a')).toEqual([
      `data: ${first}\n\n`,
      'id: 7\ndata: { "n": 1.0,\ndata: "m":2 }\n\n',
      'event: other\nid: id-1\ndata: x\n\n',
      `event: task.status\ndata: ${first}\n\n`,
      'data: cr\ndata: crlf\ndata: lf\ndata: end\n\n',
    ]);
  });

  it.each(['tasks/resubscribe', 'SendStreamingMessage', 'SubscribeToTask'])('is opened by %s', async (method) => {
    front.serve('methods', async (exchange) => {
      await emit(exchange, [undefined, first]);
      exchange.end();
    });
    expect(await writesOf('methods', rawPost('/a2a/methods', rpc(method), 'Connection: close\r\n'))).toEqual([
      `data: ${first}\n\n`,
    ]);
  });

  it('says with event: error and the envelope that it broke', async () => {
    front.serve('cut', async (exchange) => {
      await emit(exchange, [undefined, first]);
      exchange.fail('node_lost', 'the node is gone');
    });
    const message = 'internal error: the node is gone';
    const expected = `event: error\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32603, message } })}\n\n`;
    expect((await writesOf('cut')).at(-1)).toBe(expected);
  });

  it('answers an agent’s plain JSON as plain JSON', async () => {
    front.serve('json', async (exchange) => {
      await exchange.write(Buffer.from(first), { [BusHeader.content]: 'json', [BusHeader.a2aVersion]: '1.0' });
      exchange.end();
    });
    const response = await front.call('json', STREAM);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('a2a-version')).toBe('1.0');
    expect(await response.text()).toBe(first);
  });
});

describe('before the first event', () => {
  it('an error is an ordinary answer', async () => {
    front.serve('refused', (exchange) => exchange.fail('concurrency_exceeded', 'x'));
    const response = await front.call('refused', STREAM);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toMatchObject({
      id: 1,
      error: { code: -32603, message: 'internal error: concurrency limit exceeded' },
    });
    expect((await front.call('refused', STREAM, { 'a2a-version': '1.0' })).status).toBe(429);
    expect(await (await front.call('nobody', STREAM)).json()).toMatchObject({ error: { code: -32002 } });
  });

  it('a stream that ends without one is an error', async () => {
    front.serve('empty', (exchange) => exchange.end());
    expect(await (await front.call('empty', STREAM)).json()).toMatchObject({
      error: { code: -32603, message: /ended without an event/ },
    });
  });

  it('the headers wait for one keepalive interval at most', async () => {
    let fail: (() => void) | undefined;
    front.serve('silent', async (exchange) => {
      fail = () => exchange.fail('agent_unreachable', 'gone');
      await gone(exchange);
    });
    using client = await RawClient.send(front.url, rawPost('/a2a/silent', STREAM));
    await client.received(': keepalive\n\n', 1_000);
    expect(client.text).toContain('Content-Type: text/event-stream');
    fail?.();
    await client.received('event: task.error\n');
  });
});

describe('keepalives', () => {
  it('come after silence, and each event sets the clock back', async () => {
    const times: number[] = [];
    let send: ((name: string) => Promise<void>) | undefined;
    front.serve('pausing', async (exchange) => {
      send = (name) => emit(exchange, [name, '{}']);
      await send('task.status');
      await gone(exchange);
    });
    using client = await RawClient.send(front.url, rawPost('/a2a/pausing', STREAM));
    client.socket.on('data', () => times.push(performance.now()));
    await eventually(() => times.length >= 3, { what: 'two keepalives' });
    const [event = 0, keepalive = 0] = times;
    expect(keepalive - event).toBeGreaterThan(KEEPALIVE_MS * 0.8);
    await send?.('task.done');
    await client.received('event: task.done');
    expect(httpChunks(client.body).filter((chunk) => chunk.startsWith(':'))[0]).toBe(': keepalive\n\n');
  });

  it('can be turned off for one request', async () => {
    let send: (() => Promise<void>) | undefined;
    front.serve('quiet', async (exchange) => {
      send = () => emit(exchange, ['task.done', '{}']);
      await emit(exchange, ['task.status', '{}']);
      await gone(exchange);
    });
    using quiet = await RawClient.send(front.url, rawPost('/a2a/quiet?keepalive=off', STREAM));
    await quiet.received('task.status');
    // Another stream's keepalives are the clock: three of them would have been three here.
    front.serve('metronome', async (exchange) => {
      await emit(exchange, ['task.status', '{}']);
      await gone(exchange);
    });
    using metronome = await RawClient.send(front.url, rawPost('/a2a/metronome', STREAM));
    await eventually(() => metronome.text.split(': keepalive').length > 3, { what: 'three keepalives' });
    await send?.();
    await quiet.received('task.done');
    expect(quiet.text).not.toContain('keepalive\n');
  });

  it('come at the client’s own pace', async () => {
    front.serve('paced', async (exchange) => {
      await emit(exchange, ['task.status', '{}']);
      await gone(exchange);
    });
    using client = await RawClient.send(front.url, rawPost('/a2a/paced?keepalive=1', STREAM));
    await client.received('task.status');
    const started = performance.now();
    await client.received(': keepalive\n\n');
    expect(performance.now() - started).toBeGreaterThan(900);
    expect(await (await front.call('paced?keepalive=often', STREAM)).json()).toMatchObject({
      error: { code: -32600, message: /keepalive must be "off", 0 or seconds/ },
    });
  });
});

describe('a client that leaves', () => {
  it.each(['end', 'resetAndDestroy', 'destroy'] as const)(
    'by %s, 20 times, frees everything within a second',
    async (how) => {
      let opened = 0;
      let cancelled = 0;
      const subscription = front.serve('leaving', async (exchange) => {
        await emit(exchange, ['task.status', '{}']);
        opened += 1;
        await gone(exchange);
        cancelled += 1;
      });
      for (let round = 1; round <= 20; round += 1) {
        using client = await RawClient.send(front.url, rawPost('/a2a/leaving', STREAM));
        await client.received('task.status');
        await eventually(() => opened === round);
        client.socket[how]();
        await eventually(() => cancelled === round, { withinMs: 1_000, what: 'dispatch being told' });
      }
      await subscription.drain(100);
      await eventually(async () =>
        (await front.metrics.render()).includes('patchbay_a2a_sse_streams_active{agent_id="leaving"} 0'),
      );
      await eventually(() => front.bus.stats().streams === 0, { what: 'no stream on the bus' });
    },
  );

  it('is counted while it is there', async () => {
    front.serve('counted', async (exchange) => {
      await emit(exchange, ['task.status', '{}']);
      await gone(exchange);
    });
    using client = await RawClient.send(front.url, rawPost('/a2a/counted', STREAM));
    await client.received('task.status');
    const metrics = await front.metrics.render();
    expect(metrics).toContain('patchbay_a2a_sse_streams_active{agent_id="counted"} 1\n');
    expect(metrics).toContain('patchbay_a2a_requests_total{agent_id="counted",method="message/stream"} 1\n');
  });
});

describe('a client that does not read', () => {
  it('slows its agent and holds little memory', async () => {
    const event = JSON.stringify({ text: 'x'.repeat(60_000) });
    let written = 0;
    front.serve('flood', async (exchange) => {
      while (!exchange.signal.aborted) {
        await emit(exchange, [undefined, event]);
        written += 1;
      }
    });
    using client = await RawClient.send(front.url, rawPost('/a2a/flood', STREAM));
    client.socket.pause();
    let last = -1;
    // The agent stands still when buffers are full: nothing more is written between two looks.
    await eventually(
      () => {
        const stands = written === last;
        last = written;
        return stands && written > 0;
      },
      { everyMs: 300, withinMs: 10_000, what: 'the agent being slowed' },
    );
    expect(written * event.length).toBeLessThan(32_000_000);
    client.socket.resume();
    const before = written;
    await eventually(() => written > before + 100, { what: 'the stream going on' });
  });

  it('is given up after the idle time', async () => {
    await using other = await RunningFront.start({ settings: { streamIdleSeconds: 0.3 } });
    let isCancelled = false;
    other.serve('flood', async (exchange) => {
      try {
        for (;;) await emit(exchange, [undefined, 'x'.repeat(60_000)]);
      } catch {
        isCancelled = true;
      }
    });
    using client = await RawClient.send(other.url, rawPost('/a2a/flood', STREAM));
    client.socket.pause();
    await eventually(() => isCancelled, { withinMs: 5_000, what: 'the stream being given up' });
  });
});
