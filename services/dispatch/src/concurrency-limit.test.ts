import { expect, it } from 'vitest';
import { AgentSlots } from './concurrency-limit.js';

it('grants the slots of each agent, and follows its share without touching calls in hand', () => {
  const share = { size: 2 };
  const slots = new AgentSlots(share);
  expect([slots.tryTake('a'), slots.tryTake('a'), slots.tryTake('a'), slots.tryTake('b')]).toEqual([
    true,
    true,
    false,
    true,
  ]);
  expect(slots.free).toBe(0);
  share.size = 1;
  slots.release('a');
  expect([slots.tryTake('a'), slots.taken('a'), slots.free]).toEqual([false, 1, 0]);
  slots.release('a');
  slots.release('b');
  expect([slots.tryTake('a'), slots.taken('b'), slots.free]).toEqual([true, 0, 0]);
  slots.release('a');
  expect(slots.free).toBe(1);
});
