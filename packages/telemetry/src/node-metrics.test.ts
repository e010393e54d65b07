import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NodeMetrics } from './node-metrics.js';

/** How KubeMQ's clients read a line of metrics. */
const LINE = /^(\w+)(?:\{([^}]*)\})?\s+([\d.eE+-]+)$/;

let metrics: NodeMetrics;

beforeEach(() => {
  metrics = new NodeMetrics({ prefix: 'kubemq' });
});

afterEach(() => metrics.shutdown());

/** The lines of one metric. */
async function linesOf(name: string): Promise<string[]> {
  return (await metrics.render()).split('\n').filter((line) => line.startsWith(name));
}

describe('NodeMetrics', () => {
  it('has exactly the labels that clients look series up by', async () => {
    metrics.countRequest('echo-01', 'message/send');
    metrics.countRequest('echo-01', 'message/send');
    metrics.countRequest('echo-01', 'unknown');
    metrics.openStream('echo-01');
    expect(await linesOf('kubemq_a2a_requests_total')).toEqual([
      'kubemq_a2a_requests_total{agent_id="echo-01",method="message/send"} 2',
      'kubemq_a2a_requests_total{agent_id="echo-01",method="unknown"} 1',
    ]);
    expect(await linesOf('kubemq_a2a_sse_streams_active')).toEqual([
      'kubemq_a2a_sse_streams_active{agent_id="echo-01"} 1',
    ]);
    expect(await linesOf('process_resident_memory_bytes')).toEqual([
      expect.stringMatching(/^process_resident_memory_bytes \d+$/),
    ]);
  });

  it('has only lines that those clients can read, from the first collection on', async () => {
    metrics.countRequest('echo-01', 'message/send');
    metrics.recordCall('unary', 12);
    metrics.recordCall('stream', 4_000_000);
    metrics.countError('agent_unreachable');
    for (const text of [await metrics.render(), await metrics.render()]) {
      const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      for (const line of lines) expect(line).toMatch(LINE);
      expect(text).not.toMatch(/otel_scope|target_info/);
      expect(text.endsWith('\n')).toBe(true);
      expect(text).toContain('# TYPE kubemq_a2a_requests_total counter\n');
      expect(text).toContain('# TYPE kubemq_a2a_sse_streams_active gauge\n');
      expect(text).toContain('kubemq_a2a_errors_total{code="agent_unreachable"} 1\n');
      expect(text).toContain('kubemq_a2a_call_duration_seconds_count{kind="unary"} 1\n');
    }
  });

  it('puts durations into buckets whose bounds belong to them', async () => {
    for (const durationMs of [0.2, 1, 1.1, 4_000_000]) metrics.recordCall('unary', durationMs);
    const lines = await linesOf('kubemq_a2a_call_duration_seconds');
    const bucket = (le: string): string => `kubemq_a2a_call_duration_seconds_bucket{kind="unary",le="${le}"}`;
    expect(lines.slice(0, 4)).toEqual([
      'kubemq_a2a_call_duration_seconds_count{kind="unary"} 4',
      'kubemq_a2a_call_duration_seconds_sum{kind="unary"} 4000.0023',
      `${bucket('0.001')} 2`,
      `${bucket('0.0025')} 3`,
    ]);
    expect(lines.slice(-2)).toEqual([`${bucket('3600')} 3`, `${bucket('+Inf')} 4`]);
  });

  it('counts streams down to 0, each once', async () => {
    const first = metrics.openStream('a1');
    const second = metrics.openStream('a1');
    first();
    first();
    expect(await linesOf('kubemq_a2a_sse_streams_active')).toEqual(['kubemq_a2a_sse_streams_active{agent_id="a1"} 1']);
    second();
    expect(await linesOf('kubemq_a2a_sse_streams_active')).toEqual(['kubemq_a2a_sse_streams_active{agent_id="a1"} 0']);
  });

  it('folds nothing together, however many agents there are', async () => {
    for (let at = 0; at < 5_000; at += 1) metrics.countRequest(`agent-${at}`, 'message/send');
    expect(await linesOf('kubemq_a2a_requests_total')).toHaveLength(5_000);
  });

  it('drops the series of an agent that left, when its last stream is closed', async () => {
    metrics.countRequest('gone', 'message/send');
    const close = metrics.openStream('gone');
    metrics.forgetAgent('gone');
    metrics.forgetAgent('never-there');
    expect(await linesOf('kubemq_a2a_sse_streams_active')).toEqual([
      'kubemq_a2a_sse_streams_active{agent_id="gone"} 1',
    ]);
    close();
    expect(await linesOf('kubemq_a2a_')).not.toContainEqual(expect.stringContaining('gone'));
    metrics.countRequest('gone', 'message/send');
    expect(await linesOf('kubemq_a2a_requests_total')).toEqual([
      'kubemq_a2a_requests_total{agent_id="gone",method="message/send"} 1',
    ]);
  });
});
