import { describe, expect, test } from 'vitest';
import { isStreamingMethod, methodLabel } from './methods.js';

describe('a method', () => {
  test.each(['message/stream', 'tasks/resubscribe', 'SendStreamingMessage', 'SubscribeToTask'])(
    '%s is answered by a stream',
    (method) => {
      expect(isStreamingMethod(method)).toBe(true);
    },
  );

  test.each(['message/send', 'tasks/get', 'SendMessage', 'message/Stream', 'message/stream ', '', 'toString'])(
    '%j is answered once',
    (method) => {
      expect(isStreamingMethod(method)).toBe(false);
    },
  );

  test('is a metric label only when it is one of five', () => {
    const known = ['message/send', 'message/stream', 'tasks/get', 'tasks/cancel', 'tasks/send'];
    expect(known.map((method) => methodLabel(method))).toEqual(known);
    expect(['SendMessage', 'evil"} 1', ''].map((method) => methodLabel(method))).toEqual(Array(3).fill('unknown'));
  });
});
