import { ManualClock } from '@patchbay/core';
import { eventually } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import { DeadlineWheel, WheelEntry } from './deadline-wheel.js';

class Probe extends WheelEntry {
  readonly dueAt: number[] = [];
  again: ((probe: Probe) => void) | undefined;

  override onDue(nowMs: number): void {
    this.dueAt.push(nowMs);
    this.again?.(this);
  }
}

describe('DeadlineWheel', () => {
  it('calls each entry once, not before its time and little after it', async () => {
    const wheel = new DeadlineWheel();
    const start = performance.now();
    const probes = [0, 1, 5, 10, 11, 19, 50, 99, 150].map((afterMs) => {
      const probe = new Probe();
      wheel.add(probe, start + afterMs);
      return { probe, afterMs };
    });
    await eventually(() => wheel.size === 0);
    for (const { probe, afterMs } of probes) {
      expect(probe.dueAt).toHaveLength(1);
      expect(probe.dueAt[0]).toBeGreaterThanOrEqual(start + afterMs);
    }
  });

  it('keeps what is due after more than a turn, moves what is added again, and forgets what is removed', async () => {
    const clock = new ManualClock();
    const wheel = new DeadlineWheel(clock);
    const [far, moved, removed] = [new Probe(), new Probe(), new Probe()];
    wheel.add(far, 25_000);
    wheel.add(moved, 100);
    wheel.add(moved, 20_000);
    wheel.add(removed, 5_000);
    wheel.remove(removed);
    wheel.remove(removed);
    expect(wheel.size).toBe(2);
    for (const ms of [9_000, 10_000]) {
      clock.advance(ms);
      await new Promise((resolve) => {
        setTimeout(resolve, 30);
      });
    }
    expect(wheel.size).toBe(2);
    clock.advance(1_500);
    await eventually(() => moved.dueAt.length === 1);
    clock.advance(60_000);
    await eventually(() => far.dueAt.length === 1);
    expect(removed.dueAt).toEqual([]);
    expect(wheel.entries()).toEqual([]);
  });

  it('lets an entry add itself again, and take another off that is due too', async () => {
    const clock = new ManualClock();
    const wheel = new DeadlineWheel(clock);
    const [first, second] = [new Probe(), new Probe()];
    first.again = (probe) => {
      wheel.remove(second);
      if (probe.dueAt.length < 3) wheel.add(probe, clock.monotonicMs() + 10);
    };
    wheel.add(first, 10);
    wheel.add(second, 10);
    await eventually(() => {
      clock.advance(10);
      return first.dueAt.length === 3;
    });
    expect(second.dueAt).toEqual([]);
    expect(wheel.size).toBe(0);
  });

  it('reads what arrived before it calls, after the event loop was held up', async () => {
    const wheel = new DeadlineWheel();
    const probe = new Probe();
    const order: string[] = [];
    probe.again = () => order.push('due');
    wheel.add(probe, performance.now() + 50);
    const { port1, port2 } = new MessageChannel();
    port2.once('message', () => {
      order.push('message');
    });
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    port1.postMessage('sign of life');
    const busyUntil = performance.now() + 300;
    while (performance.now() < busyUntil);
    await eventually(() => order.length === 2);
    port1.close();
    expect(order).toEqual(['message', 'due']);
  });
});
