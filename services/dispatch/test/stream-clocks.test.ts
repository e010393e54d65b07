import { eventually, startScriptedAgent } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DispatchRig, partOf, request } from './dispatch-rig.js';

// Real HTTP under false clocks: undici's own timers run on them too, so its limits of 300 s would show.
const CLOCKS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] as const;

/** Lets sockets deliver what is under way; no clock is involved. */
async function breathe(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
}

async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 20_000 && !condition(); turn += 1) await new Promise(setImmediate);
  expect(condition()).toBe(true);
}

beforeEach(() => void vi.useFakeTimers({ toFake: [...CLOCKS] }));
afterEach(() => void vi.useRealTimers());

describe('an agent silent within its stream', () => {
  test('for 301 s, and for 899 s, is heard again; for 900 s ends the stream', async () => {
    const writes: ((text: string) => void)[] = [];
    await using agent = await startScriptedAgent({
      kind: 'custom',
      handle: (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.flushHeaders();
        writes.push((text) => void response.write(text));
      },
    });
    await using rig = new DispatchRig();
    rig.register('quiet-01', agent.url);
    const seen: string[] = [];
    const over = (async () => {
      for await (const part of rig.stream('quiet-01', request('message/stream'))) seen.push(partOf(part).data);
    })().then(
      () => 'ended',
      (error: unknown) => (error as { code: string }).code,
    );
    await until(() => rig.dispatch.activeStreams('quiet-01') === 1);
    for (const [silenceMs, text] of [
      [301_000, 'one'],
      [899_000, 'two'],
    ] as const) {
      await vi.advanceTimersByTimeAsync(silenceMs);
      await breathe();
      expect(rig.dispatch.inHand()).toBe(1);
      writes[0]?.(`data: ${text}\n\n`);
      await until(() => seen.at(-1) === text);
    }
    await vi.advanceTimersByTimeAsync(899_000);
    expect(rig.dispatch.inHand()).toBe(1);
    await vi.advanceTimersByTimeAsync(1_001);
    expect(await over).toBe('deadline_exceeded');
    vi.useRealTimers();
    await eventually(() => agent.openConnections === 0);
  });

  test('while its reader is away for an hour: that silence is not its own', async () => {
    await using agent = await startScriptedAgent({
      kind: 'custom',
      handle: (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (let n = 0; n < 100; n += 1) response.write(`data: ${String(n).padEnd(10_000)}\n\n`);
        response.end();
      },
    });
    await using rig = new DispatchRig();
    rig.register('fast-01', agent.url);
    const parts = rig.stream('fast-01', request('message/stream'), { windowBytes: 1_000 })[Symbol.asyncIterator]();
    expect((await parts.next()).done).toBe(false);
    await breathe();
    await vi.advanceTimersByTimeAsync(3_600_000);
    let rest = 0;
    while ((await parts.next()).done !== true) rest += 1;
    expect(rest).toBe(99);
  });
});
