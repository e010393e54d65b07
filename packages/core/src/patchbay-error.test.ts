import { expect, test } from 'vitest';
import { isAgentId } from './agent-id.js';
import { newCallId } from './call-id.js';
import { ManualClock } from './clock.js';
import { asPatchbayError, PatchbayError } from './patchbay-error.js';
import { formatTimestamp } from './timestamp.js';

test('an unknown error becomes internal and keeps its cause out of the message', () => {
  const cause = new Error('password=secret');
  const error = asPatchbayError(cause);
  expect([error.code, error.message, error.cause]).toEqual(['internal', 'internal error', cause]);
  expect(asPatchbayError(error)).toBe(error);
});

test('whether a retry may help follows the code unless it is said', () => {
  expect(new PatchbayError('store_unavailable', 'x').retryable).toBe(true);
  expect(new PatchbayError('invalid_argument', 'x').retryable).toBe(false);
  expect(new PatchbayError('store_unavailable', 'x', { retryable: false }).retryable).toBe(false);
});

test.each(['a', 'a..b', 'a>', '*', '-', 'A', 'a b', '__proto__', '', 'a'.repeat(129), 'агент', 'ab\n'])(
  '%j is no agent id',
  (text) => {
    expect(isAgentId(text)).toBe(false);
  },
);

test.each(['--', 'e2e-test-agent', '-a-', '00', 'a'.repeat(128)])('%j is an agent id', (text) => {
  expect(isAgentId(text)).toBe(true);
});

test('call ids are unique and sort by time', () => {
  const ids = Array.from({ length: 5_000 }, () => newCallId());
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(ids);
});

test('timestamps sort as strings', () => {
  expect(formatTimestamp(1_000)).toBe('1970-01-01T00:00:01.000Z');
  expect(formatTimestamp(1_500) < formatTimestamp(1_510)).toBe(true);
});

test('a manual clock moves only when told', () => {
  const clock = new ManualClock(1_000);
  clock.advance(5);
  clock.jump(100);
  expect([clock.nowMs(), clock.monotonicMs()]).toEqual([1_105, 5]);
});
