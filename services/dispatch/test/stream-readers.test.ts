import { eventually, startScriptedAgent } from '@patchbay/testkit';
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

describe('a reader of a stream', () => {
  test('who leaves a hundred times while the agent is silent leaves nothing behind', async () => {
    await using world = await rigWith({ kind: 'stream', events: TASK.slice(0, 1), finally: 'silence' });
    for (let round = 0; round < 100; round += 1) {
      const leaving = new AbortController();
      const left = (async () => {
        for await (const part of world.rig.stream('flow-01', STREAM, { signal: leaving.signal })) {
          expect(partOf(part).name).toBe('task.status');
          leaving.abort();
        }
      })();
      await expect(left).rejects.toMatchObject({ code: 'cancelled' });
    }
    await eventually(() => world.agent.openConnections === 0, { withinMs: 1_000 });
    expect(world.agent.abandoned).toBe(100);
    expect(world.rig.dispatch.inHand()).toBe(0);
    expect(world.rig.dispatch.streams.size).toBe(0);
    expect(world.rig.bus.stats()).toMatchObject({ exchanges: 0, streams: 0, requests: 0 });
  });

  test('who leaves before the agent has answered', async () => {
    await using world = await rigWith({ kind: 'silent' });
    const leaving = new AbortController();
    const reading = world.rig.readAll('flow-01', STREAM, { signal: leaving.signal });
    await eventually(() => world.agent.inHand === 1);
    leaving.abort();
    expect((await reading).error?.code).toBe('cancelled');
    await eventually(() => world.agent.openConnections === 0, { withinMs: 1_000 });
  });

  test('who is slow slows its agent, holds little memory, and disturbs nobody', async () => {
    await using world = await rigWith({ kind: 'firehose', bytesPerSecond: 50_000_000 });
    await using other = await startScriptedAgent({ kind: 'echo' });
    world.rig.register('echo-01', other.url);
    const before = process.memoryUsage().rss;
    const started = performance.now();
    let parts = 0;
    let slowestMs = 0;
    for await (const part of world.rig.stream('flow-01', STREAM)) {
      expect(part.body.length).toBeGreaterThan(65_000);
      parts += 1;
      const callMs = performance.now();
      await world.rig.call('echo-01', request('message/send'));
      slowestMs = Math.max(slowestMs, performance.now() - callMs);
      await new Promise((resolve) => {
        setTimeout(resolve, 50);
      });
      if (performance.now() - started > 3_000) break;
    }
    expect(parts).toBeGreaterThan(20);
    expect(slowestMs).toBeLessThan(500);
    // Three seconds of the firehose are 150 MB.
    expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000);
    await eventually(() => world.agent.openConnections === 0, { withinMs: 1_000 });
  });

  test('who is fast gets everything of a long stream, in order', async () => {
    const events = Array.from({ length: 5_000 }, (_, n) => ({
      name: 'task.status',
      data: { n, pad: 'x'.repeat(200) },
    }));
    await using world = await rigWith({ kind: 'stream', events: [...events, { name: 'task.done', data: {} }] });
    const { parts, error } = await world.rig.readAll('flow-01', STREAM, { windowBytes: 4_096 });
    expect(error).toBeUndefined();
    expect(parts).toHaveLength(5_001);
    expect(parts.slice(0, -1).every(({ data }, n) => (JSON.parse(data) as { n: number }).n === n)).toBe(true);
  });
});
