import { ManualClock } from '@patchbay/core';
import { beforeEach, describe, expect, it } from 'vitest';
import { DeafTimes } from './deaf-times.js';

const TTL_MS = 300_000;
let clock: ManualClock;
let deafTimes: DeafTimes;

beforeEach(() => {
  clock = new ManualClock();
  clock.advance(1_000_000);
  deafTimes = new DeafTimes(clock);
});

function outage(cause: 'bus' | 'database', ms: number): void {
  deafTimes.begin(cause);
  clock.advance(ms);
  deafTimes.end(cause);
}

describe('DeafTimes', () => {
  it('adds nothing when nothing happened, nor for outages of up to 5 s', () => {
    expect(deafTimes.withinMs(TTL_MS)).toBe(0);
    outage('bus', 5_000);
    deafTimes.noteStall(4_000);
    deafTimes.end('database');
    expect(deafTimes.withinMs(TTL_MS)).toBe(0);
  });

  it('adds an outage while it may explain the silence of an agent, and not after', () => {
    outage('bus', 60_000);
    expect(deafTimes.withinMs(TTL_MS)).toBe(60_000);
    clock.advance(TTL_MS);
    expect(deafTimes.withinMs(TTL_MS)).toBe(60_000);
    clock.advance(1);
    expect(deafTimes.withinMs(TTL_MS)).toBe(0);
  });

  it('adds an outage that goes on', () => {
    deafTimes.begin('database');
    clock.advance(3_000);
    expect(deafTimes.withinMs(TTL_MS)).toBe(0);
    deafTimes.begin('database');
    clock.advance(7_000);
    expect(deafTimes.withinMs(TTL_MS)).toBe(10_000);
  });

  it('adds several, and counts the time once in which bus and database were away together', () => {
    outage('bus', 10_000);
    clock.advance(50_000);
    deafTimes.begin('database');
    clock.advance(10_000);
    deafTimes.begin('bus');
    clock.advance(10_000);
    deafTimes.end('database');
    clock.advance(10_000);
    deafTimes.end('bus');
    expect(deafTimes.withinMs(TTL_MS)).toBe(40_000);
  });

  it('looks further back the longer it was deaf', () => {
    outage('bus', 60_000);
    clock.advance(TTL_MS - 10_000);
    outage('bus', 60_000);
    // The first outage ended 350 s ago: an agent that beat before it has been silent for 300 s of hearing at most.
    clock.advance(5_000);
    expect(deafTimes.withinMs(TTL_MS)).toBe(120_000);
  });

  it('adds the time in which the process stood still', () => {
    clock.advance(30_000);
    deafTimes.noteStall(30_000);
    expect(deafTimes.withinMs(TTL_MS)).toBe(30_000);
  });
});
