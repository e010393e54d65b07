import { describe, expect, it } from 'vitest';
import { partCost } from '../part-queue.js';
import { IncomingParts } from './incoming-parts.js';
import type { WireMessage } from './wire-message.js';

function frame(kind: 'part' | 'data', sequence: number, body: string): WireMessage {
  return {
    subject: '',
    reply: undefined,
    body: Buffer.from(body),
    headers: kind === 'data' ? { last: 'yes' } : {},
    status: 0,
    kind,
    sequence,
    credit: undefined,
    sent: undefined,
    speaksFrames: false,
    wantsStream: false,
    wantsSign: false,
    timeoutMs: undefined,
    error: undefined,
    errorMessage: undefined,
  };
}

describe('IncomingParts', () => {
  it('puts messages together, with the headers of their last frame', () => {
    const parts = new IncomingParts(100, 'response_too_large');
    expect(parts.take(frame('part', 1, 'ab'))).toBeUndefined();
    expect(parts.take(frame('part', 2, 'cd'))).toBeUndefined();
    expect(parts.payPending()).toBe(2 * partCost(2));
    const whole = parts.take(frame('data', 3, 'e'));
    expect(Buffer.from(whole?.body ?? []).toString()).toBe('abcde');
    expect(whole?.headers).toEqual({ last: 'yes' });
    expect(whole?.cost).toBe(partCost(1));
    expect(Buffer.from(parts.take(frame('data', 4, 'f'))?.body ?? []).toString()).toBe('f');
  });

  it.each([
    [1, 3],
    [1, 1],
    [2, 3],
    [1, 0],
  ])('refuses number %d followed by %d', (first, second) => {
    const parts = new IncomingParts(100, 'response_too_large');
    expect(() => {
      parts.take(frame('data', first, 'a'));
      parts.take(frame('data', second, 'b'));
    }).toThrow(expect.objectContaining({ code: 'stream_broken' }));
  });

  it('refuses a message that is larger than allowed, but not many small ones', () => {
    const parts = new IncomingParts(4, 'request_too_large');
    for (let sequence = 1; sequence < 10; sequence++) parts.take(frame('data', sequence, 'abcd'));
    parts.take(frame('part', 10, 'abc'));
    expect(() => parts.take(frame('data', 11, 'de'))).toThrow(expect.objectContaining({ code: 'request_too_large' }));
  });
});
