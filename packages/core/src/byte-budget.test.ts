import { expect, it } from 'vitest';
import { ByteBudget } from './byte-budget.js';
import { ManualClock } from './clock.js';

it('gives what is left, and takes back what is released', () => {
  const budget = new ByteBudget(100);
  const [first, second] = [budget.claim(), budget.claim()];
  expect(first.reserve(60)).toBe(true);
  expect(second.reserve(41)).toBe(false);
  expect(second.reserve(40)).toBe(true);
  expect(first.reserve(61)).toBe(false);
  expect(budget.usedBytes).toBe(100);
  first.release();
  first.release();
  expect(budget.usedBytes).toBe(40);
});

it('gives up unread replies, the oldest first and no more than needed, once they are a second old', () => {
  const clock = new ManualClock();
  const budget = new ByteBudget(100, clock);
  const givenUp: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    expect(budget.claim(() => givenUp.push(name)).reserve(30)).toBe(true);
    clock.advance(400);
  }
  expect(budget.claim().reserve(20)).toBe(true); // 1.2 s: the first is old enough
  expect(givenUp).toEqual(['a']);
  expect(budget.claim().reserve(30)).toBe(false);
  clock.advance(1_000);
  expect(budget.claim().reserve(40)).toBe(true);
  expect(givenUp).toEqual(['a', 'b']);
});
