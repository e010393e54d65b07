import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { BusHeader } from '@patchbay/bus';
import { silentLogger } from '@patchbay/telemetry';
import type { Logger } from '@patchbay/telemetry';
import { startScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DispatchRig, request } from './dispatch-rig.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const SAMPLED = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` };

describe('the step of a call that goes to the agent', () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

  beforeAll(() => void trace.setGlobalTracerProvider(provider));
  beforeEach(() => {
    exporter.reset();
  });
  afterAll(async () => {
    trace.disable();
    await provider.shutdown();
  });

  test('is a client span below the caller, and the parent of what the agent records', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig();
    rig.register('echo-01', `${agent.url}a2a?key=secret`);
    await rig.call('echo-01', request('message/send'), { headers: SAMPLED });
    const [span] = exporter.getFinishedSpans();
    expect(span?.name).toBe('POST');
    expect(span?.parentSpanContext?.spanId).toBe(PARENT_ID);
    expect(span?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'server.address': 'localhost',
      'server.port': agent.port,
      'url.path': '/a2a',
      'patchbay.agent_id': 'echo-01',
    });
    const { traceId, spanId } = span?.spanContext() ?? {};
    expect(traceId).toBe(TRACE_ID);
    expect(agent.requests[0]?.headers['traceparent']).toBe(`00-${TRACE_ID}-${spanId}-01`);
  });

  test.each([
    ['message/send', 503, 'agent_http_error'],
    ['message/stream', 504, 'deadline_exceeded'],
  ])('of a %s that fails says why', async (method, status, code) => {
    await using agent = await startScriptedAgent({ kind: 'error', status });
    await using rig = new DispatchRig();
    rig.register('down-01', agent.url);
    if (method === 'message/send') await rig.refusal('down-01', request(method), { headers: SAMPLED });
    else await rig.readAll('down-01', request(method), { headers: SAMPLED });
    const [span] = exporter.getFinishedSpans();
    expect(span?.attributes).toMatchObject({ 'error.type': code, 'http.response.status_code': status });
  });

  test('is not recorded when the caller did not sample', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig();
    rig.register('echo-01', agent.url);
    await rig.call('echo-01', request('message/send'));
    expect(exporter.getFinishedSpans()).toEqual([]);
    expect(agent.requests[0]?.headers['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });
});

describe('the log', () => {
  test('has one line for a failed call, without payloads, and none for a good one', async () => {
    const lines: unknown[][] = [];
    const logger: Logger = Object.assign(silentLogger(), { warn: (...line: unknown[]) => void lines.push(line) });
    await using agent = await startScriptedAgent({ kind: 'error', status: 500, body: 'stack trace with a secret' });
    await using rig = new DispatchRig({ logger });
    rig.register('down-01', agent.url);
    const headers = { ...SAMPLED, [BusHeader.call]: '01ARZ3NDEKTSV4RRFFQ69G5FAV' };
    await rig.refusal('down-01', request('message/send', { text: 'private' }), { headers });
    agent.play({ kind: 'echo' });
    await rig.call('down-01', request('message/send'), { headers });
    expect(lines).toEqual([
      [
        {
          agent_id: 'down-01',
          call_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
          code: 'agent_http_error',
          trace_id: TRACE_ID,
          duration_ms: expect.any(Number) as number,
        },
        'call failed: agent answered HTTP 500',
      ],
    ]);
  });
});
