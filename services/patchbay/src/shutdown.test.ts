import { ManualClock, systemClock } from '@patchbay/core';
import { silentLogger } from '@patchbay/telemetry';
import { expect, it } from 'vitest';
import { Shutdown } from './shutdown.js';

it('closes parts in reverse order and tells each what is left of the soft deadline', async () => {
  const clock = new ManualClock();
  const shutdown = new Shutdown(clock, silentLogger());
  const closed: string[] = [];
  for (const name of ['store', 'bus', 'front']) {
    shutdown.defer(name, (withinMs) => {
      closed.push(`${name} ${withinMs}`);
      clock.advance(6_000);
    });
  }
  expect(await shutdown.run({ softMs: 10_000, graceMs: 10_000 })).toBe(true);
  expect(closed).toEqual(['front 10000', 'bus 4000', 'store 0']);
});

it('goes on when a part fails or hangs', async () => {
  const shutdown = new Shutdown(systemClock, silentLogger());
  const closed: string[] = [];
  shutdown.defer('store', () => {
    closed.push('store');
  });
  shutdown.defer('hangs', () => new Promise(() => {}));
  shutdown.defer('fails', () => {
    throw new Error('no');
  });
  expect(await shutdown.run({ softMs: 10, graceMs: 40 })).toBe(false);
  expect(closed).toEqual(['store']);
});

it('closes once', async () => {
  const shutdown = new Shutdown(systemClock, silentLogger());
  let count = 0;
  shutdown.defer('part', () => {
    count += 1;
  });
  const limits = { softMs: 10, graceMs: 10 };
  await Promise.all([shutdown.run(limits), shutdown.run(limits)]);
  expect(count).toBe(1);
});
