import { ManualClock } from '@patchbay/core';
import { describe, expect, it } from 'vitest';
import { DatabaseClock } from './database-clock.js';

const START = Date.UTC(2026, 0, 1);

function start(): { clock: ManualClock; databaseClock: DatabaseClock } {
  const clock = new ManualClock(START);
  clock.advance(5_000);
  return { clock, databaseClock: new DatabaseClock(clock) };
}

describe('DatabaseClock', () => {
  it('is the wall clock until the database was asked, and stale', () => {
    const { clock, databaseClock } = start();
    expect(databaseClock.nowMs()).toBe(START + 5_000);
    expect(databaseClock.isStale).toBe(true);
    clock.advance(1);
    expect(databaseClock.nowMs()).toBe(START + 5_001);
  });

  it('takes the answer for the middle of the round trip', () => {
    const { clock, databaseClock } = start();
    const askedAtMs = clock.monotonicMs();
    clock.advance(100);
    databaseClock.noteReading(1_000_000, askedAtMs);
    expect(databaseClock.nowMs()).toBe(1_000_050);
    clock.advance(10);
    expect(databaseClock.nowMs()).toBe(1_000_060);
    expect(databaseClock.isStale).toBe(false);
  });

  it('does not follow a wall clock that is set, but asks again', () => {
    const { clock, databaseClock } = start();
    databaseClock.noteReading(1_000_000, clock.monotonicMs());
    clock.jump(3_600_000);
    expect(databaseClock.nowMs()).toBe(1_000_000);
    expect(databaseClock.isStale).toBe(true);
    databaseClock.noteReading(1_000_000, clock.monotonicMs());
    expect(databaseClock.isStale).toBe(false);
  });

  it('is stale after 30 s', () => {
    const { clock, databaseClock } = start();
    databaseClock.noteReading(1_000_000, clock.monotonicMs());
    clock.advance(30_001);
    expect(databaseClock.isStale).toBe(true);
  });

  it('ignores a reading that took too long, once there is a better one', () => {
    const { clock, databaseClock } = start();
    const firstMs = clock.monotonicMs();
    clock.advance(2_000);
    databaseClock.noteReading(1_000_000, firstMs);
    expect(databaseClock.nowMs()).toBe(1_001_000);
    const slowMs = clock.monotonicMs();
    clock.advance(2_000);
    databaseClock.noteReading(5_000_000, slowMs);
    expect(databaseClock.nowMs()).toBe(1_003_000);
  });
});
