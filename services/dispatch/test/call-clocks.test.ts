import { startScriptedAgent } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DispatchRig, request } from './dispatch-rig.js';

// Real HTTP under false clocks: undici's own timers run on them too, so its limits of 300 s would show; in a file
// of its own, because those timers do not outlive the first false clock they were started on.
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

describe('an agent that takes its time', () => {
  test('answers after 31 s when the caller asked for 60', async () => {
    const answers: (() => void)[] = [];
    await using agent = await startScriptedAgent({
      kind: 'custom',
      handle: (_request, response) => {
        answers.push(() => void response.end('{"jsonrpc":"2.0","id":1,"result":{}}'));
      },
    });
    await using rig = new DispatchRig();
    rig.register('late-01', agent.url);
    const call = rig.call('late-01', request('message/send'), { timeoutMs: 60_000 });
    await until(() => agent.inHand === 1);
    await vi.advanceTimersByTimeAsync(31_000);
    answers[0]?.();
    expect((await call).body.length).toBeGreaterThan(0);
  });

  test('of 3,599 s when the caller asked for an hour, and not of more', async () => {
    await using agent = await startScriptedAgent({ kind: 'silent' });
    await using rig = new DispatchRig();
    rig.register('hour-01', agent.url);
    const call = rig.refusal('hour-01', request('message/send'), { timeoutMs: 3_600_000 });
    await until(() => agent.inHand === 1);
    await vi.advanceTimersByTimeAsync(3_599_000);
    await breathe();
    expect(rig.dispatch.inHand()).toBe(1);
    await vi.advanceTimersByTimeAsync(1_001);
    expect((await call).code).toBe('deadline_exceeded');
  });
});
