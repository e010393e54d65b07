import { trace } from '@opentelemetry/api';
import type { Attributes, Context, Span, SpanContext, SpanOptions, Tracer } from '@opentelemetry/api';
import { PatchbayError } from '@patchbay/core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MemoryBus } from './memory/memory-bus.js';
import { TracedBus } from './traced-bus.js';

interface Recorded {
  readonly name: string;
  readonly kind: number | undefined;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly attributes: Attributes;
  ends: number;
}

const recorded: Recorded[] = [];

/** The least of a tracing SDK that shows what was recorded. */
const tracer = {
  startSpan(name: string, options: SpanOptions, parent: Context): Span {
    const parentContext = trace.getSpanContext(parent);
    const spanId = String(recorded.length + 1).padStart(16, '0');
    const span: Recorded = {
      name,
      kind: options.kind,
      spanId,
      parentId: parentContext?.spanId,
      attributes: { ...options.attributes },
      ends: 0,
    };
    recorded.push(span);
    const context: SpanContext = { traceId: parentContext?.traceId ?? '', spanId, traceFlags: 1 };
    return {
      spanContext: () => context,
      setAttribute: (key: string, value: string) => void (span.attributes[key] = value),
      setStatus: () => undefined,
      end: () => void span.ends++,
    } as unknown as Span;
  },
} as unknown as Tracer;

const SAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const UNSAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';
const NOTHING = new Uint8Array(0);

beforeAll(() => {
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
});

afterAll(() => {
  trace.disable();
});

beforeEach(() => {
  recorded.length = 0;
});

describe('TracedBus', () => {
  it('joins caller and responder in one trace', async () => {
    const bus = new TracedBus(new MemoryBus(), 'memory');
    const seen: (string | undefined)[] = [];
    bus.subscribe('a2a.echo-01', ({ headers, exchange }) => {
      seen.push(headers['traceparent'], headers['tracestate'], headers['X-Kept']);
      exchange?.reply(NOTHING);
    });
    const headers = { traceparent: SAMPLED, tracestate: 'a=b', 'X-Kept': 'yes' };
    await bus.request('a2a.echo-01', NOTHING, { timeoutMs: 1_000, headers });
    expect(recorded.map(({ name, kind, parentId, ends }) => ({ name, kind, parentId, ends }))).toEqual([
      { name: 'a2a.{agent_id} publish', kind: 3, parentId: 'b7ad6b7169203331', ends: 1 },
      { name: 'a2a.{agent_id} process', kind: 4, parentId: recorded[0]?.spanId, ends: 1 },
    ]);
    expect(recorded[0]?.attributes).toMatchObject({
      'messaging.system': 'memory',
      'messaging.destination.name': 'a2a.echo-01',
      'messaging.operation.type': 'send',
    });
    expect(seen).toEqual([`00-0af7651916cd43dd8448eb211c80319c-${recorded[1]?.spanId}-01`, 'a=b', 'yes']);
  });

  it('hands on what is not sampled as it is', async () => {
    const inner = new MemoryBus();
    const bus = new TracedBus(inner, 'memory');
    const headers = { traceparent: UNSAMPLED };
    let seen: unknown;
    bus.subscribe('a2a.x', (delivery) => {
      seen = delivery.headers;
      delivery.exchange?.reply(NOTHING);
    });
    await bus.request('a2a.x', NOTHING, { timeoutMs: 1_000, headers });
    await bus.request('a2a.x', NOTHING, { timeoutMs: 1_000 });
    await bus.request('a2a.x', NOTHING, { timeoutMs: 1_000, headers: { traceparent: 'nonsense1' } });
    await bus.request('a2a.x', NOTHING, { timeoutMs: 1_000, headers });
    expect(seen).toBe(headers);
    expect(recorded).toEqual([]);
  });

  it('ends its spans whichever way a call ends', async () => {
    const bus = new TracedBus(new MemoryBus(), 'memory');
    bus.subscribe('a2a.ways', async ({ body, exchange }) => {
      const way = Buffer.from(body).toString();
      if (way === 'throw') throw new PatchbayError('agent_bad_reply', 'no');
      if (way === 'fail') exchange?.fail('agent_unreachable', 'no');
      await exchange?.write(NOTHING);
      if (way === 'end') exchange?.end();
      await exchange?.write(NOTHING);
    });
    bus.subscribe('a2a.silent', () => undefined);
    const call = async (way: string, subject = 'a2a.ways'): Promise<void> => {
      const options = { timeoutMs: 30, headers: { traceparent: SAMPLED } };
      if (way === 'timeout') await bus.request(subject, NOTHING, options);
      for await (const part of bus.stream(subject, Buffer.from(way), options)) if (way === 'leave') void part;
    };
    for (const way of ['throw', 'fail', 'end']) await call(way).catch(() => undefined);
    await call('timeout', 'a2a.silent').catch(() => undefined);
    for await (const part of bus.stream('a2a.ways', NOTHING, { timeoutMs: 1_000, headers: { traceparent: SAMPLED } })) {
      if (part.body.length === 0) break;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    expect(recorded.map(({ name, ends, attributes }) => [name.split(' ')[1], ends, attributes['error.type']])).toEqual([
      ['publish', 1, 'agent_bad_reply'],
      ['process', 1, 'agent_bad_reply'],
      ['publish', 1, 'agent_unreachable'],
      ['process', 1, 'agent_unreachable'],
      ['publish', 1, undefined],
      ['process', 1, undefined],
      ['publish', 1, 'deadline_exceeded'],
      ['process', 1, 'deadline_exceeded'],
      ['publish', 1, undefined],
      ['process', 1, undefined],
    ]);
  });
});
