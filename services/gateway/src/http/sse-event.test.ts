import { describe, expect, it } from 'vitest';
import { encodeSseEvent, KEEPALIVE } from './sse-event.js';

const encode = (data: string, rest: { name?: string; id?: string } = {}): string =>
  encodeSseEvent({ data: Buffer.from(data), ...rest }).toString();

describe('encodeSseEvent', () => {
  it.each([
    [encode('{"a":1}'), 'data: {"a":1}\n\n'],
    [encode('x', { name: 'task.done' }), 'event: task.done\ndata: x\n\n'],
    [encode('x', { name: 'n', id: '7' }), 'event: n\nid: 7\ndata: x\n\n'],
    [encode(''), 'data: \n\n'],
    [encode('a\nb\r\nc\rd'), 'data: a\ndata: b\ndata: c\ndata: d\n\n'],
    [encode('\n'), 'data: \ndata: \n\n'],
    [encode('é✓'), 'data: é✓\n\n'],
  ])('%j', (actual, expected) => {
    expect(actual).toBe(expected);
  });

  it('takes bytes out of the middle of a larger buffer', () => {
    const data = new Uint8Array(Buffer.from('xxa\nbxx').buffer.slice(0)).subarray(0, 0);
    expect(encodeSseEvent({ data }).toString()).toBe('data: \n\n');
    expect(encodeSseEvent({ data: Buffer.from('xxa\nbxx').subarray(2, 5) }).toString()).toBe('data: a\ndata: b\n\n');
  });

  it('has the keepalive that clients match by the letter', () => {
    expect(KEEPALIVE.toString()).toBe(': keepalive\n\n');
  });
});
