import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Keepalive, readKeepaliveQuery } from './keepalive.js';

describe('readKeepaliveQuery', () => {
  it.each([
    ['/a2a/x', undefined],
    ['/a2a/x?a=b', undefined],
    ['/a2a/x?keepalive=off', 0],
    ['/a2a/x?keepalive=0', 0],
    ['/a2a/x?a=b&keepalive=15', 15_000],
    ['/a2a/x?keepalive=2.5', 2_500],
    ['/a2a/x?keepalive=3600', 3_600_000],
  ])('%s', (url, expected) => {
    expect(readKeepaliveQuery(url)).toBe(expected);
  });

  it.each(['3601', '0.5', '', '1e3', '-1'])('refuses %j, and says what it got', (asked) => {
    const rule = `keepalive must be "off", 0 or seconds from 1 to 3600; got ${JSON.stringify(asked)}`;
    expect(() => readKeepaliveQuery(`/a2a/x?keepalive=${asked}`)).toThrow(rule);
  });

  it('refuses what is no text', () => {
    expect(() => readKeepaliveQuery('/a2a/x?keepalive=%zz')).toThrow('got "%zz"');
  });
});

describe('Keepalive', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('ticks after each silence, until stopped', () => {
    let ticks = 0;
    const keepalive = new Keepalive(30_000, () => (ticks += 1));
    vi.advanceTimersByTime(29_999);
    keepalive.reset();
    vi.advanceTimersByTime(29_999);
    expect(ticks).toBe(0);
    vi.advanceTimersByTime(1);
    expect(ticks).toBe(1);
    vi.advanceTimersByTime(60_000);
    expect(ticks).toBe(3);
    keepalive.stop();
    vi.advanceTimersByTime(60_000);
    expect(ticks).toBe(3);
  });

  it('is silent when it is off', () => {
    const keepalive = new Keepalive(0, () => {
      throw new Error('ticked');
    });
    vi.advanceTimersByTime(1_000_000);
    keepalive.reset();
    keepalive.stop();
  });
});
