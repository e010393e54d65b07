import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { startCallSpan } from './call-span.js';
import { isSampled, traceIdOf } from './trace-context.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SAMPLED = { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, tracestate: 'a=b' };
const UNSAMPLED = { traceparent: `00-${TRACE}-b7ad6b7169203331-00` };

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

beforeEach(() => {
  exporter.reset();
  trace.setGlobalTracerProvider(provider);
});

afterAll(async () => {
  trace.disable();
  await provider.shutdown();
});

describe('startCallSpan', () => {
  it('records a sampled step below its parent', () => {
    const span = startCallSpan(SAMPLED, 'POST /a2a/{agent_id}', 'server', { 'http.route': '/a2a/{agent_id}' });
    span.setAttributes({ 'patchbay.agent_id': 'echo' });
    span.end();
    const [recorded] = exporter.getFinishedSpans();
    expect(recorded).toMatchObject({
      name: 'POST /a2a/{agent_id}',
      kind: SpanKind.SERVER,
      parentSpanContext: { spanId: 'b7ad6b7169203331', traceId: TRACE },
      attributes: { 'http.route': '/a2a/{agent_id}', 'patchbay.agent_id': 'echo' },
      status: { code: SpanStatusCode.UNSET },
    });
    expect(span.context).toEqual({
      traceparent: `00-${TRACE}-${recorded?.spanContext().spanId}-01`,
      tracestate: 'a=b',
    });
  });

  it('makes children of the step’s own context', () => {
    const parent = startCallSpan(SAMPLED, 'parent', 'server');
    const child = startCallSpan(parent.context, 'child', 'producer');
    child.end();
    parent.end();
    const [first, second] = exporter.getFinishedSpans();
    expect(first).toMatchObject({ name: 'child', kind: SpanKind.PRODUCER });
    expect(first?.parentSpanContext?.spanId).toBe(second?.spanContext().spanId);
  });

  it('marks a failed step with the code', () => {
    const span = startCallSpan(SAMPLED, 'call', 'client');
    span.fail('agent_unreachable', 'connection refused');
    span.end();
    expect(exporter.getFinishedSpans()[0]).toMatchObject({
      attributes: { 'error.type': 'agent_unreachable' },
      status: { code: SpanStatusCode.ERROR, message: 'connection refused' },
    });
  });

  it('builds nothing for an unsampled step, and passes its context on', () => {
    const span = startCallSpan(UNSAMPLED, 'call', 'server');
    span.setAttributes({ a: 1 });
    span.fail('internal', 'x');
    span.end();
    expect(span.context).toBe(UNSAMPLED);
    expect(exporter.getFinishedSpans()).toEqual([]);
  });

  it('keeps the trace of a sampled step when no SDK is there', () => {
    trace.disable();
    const span = startCallSpan(SAMPLED, 'call', 'server');
    span.end();
    expect(traceIdOf(span.context)).toBe(TRACE);
    expect(isSampled(span.context)).toBe(true);
  });
});
