import { describe, expect, it } from 'vitest';
import { GrowingBytes } from './growing-bytes.js';

const anyRoom = { reserve: () => true };

describe('GrowingBytes', () => {
  it.each([0, 5, 200_000, 7_000_000])('gives back what came in chunks, %d bytes having been announced', (expected) => {
    const bytes = new GrowingBytes(1_000_000, anyRoom);
    bytes.expect(expected);
    const chunks = Array.from({ length: 20 }, (_, at) => Buffer.alloc(at * 1_000 + 1, at));
    for (const chunk of chunks) expect(bytes.add(chunk)).toBeUndefined();
    expect(bytes.bytes.equals(Buffer.concat(chunks))).toBe(true);
  });

  it('takes no memory for what was only announced, and ends exactly at it', () => {
    const asked: number[] = [];
    const bytes = new GrowingBytes(10_000_000, { reserve: (total) => asked.push(total) > 0 });
    bytes.expect(1_000_000);
    for (let sent = 0; sent < 1_000_000; sent += 50_000) {
      expect(bytes.add(Buffer.alloc(50_000))).toBeUndefined();
      expect(asked.at(-1) ?? 0).toBeLessThanOrEqual((sent + 50_000) * 2);
    }
    expect(asked.at(-1)).toBe(1_000_000);
  });

  it('refuses what is too large and what finds no room', () => {
    const bytes = new GrowingBytes(200_000, { reserve: (total) => total < 150_000 });
    expect(bytes.add(Buffer.alloc(200_001))).toBe('too_large');
    expect(bytes.add(Buffer.alloc(60_000))).toBeUndefined();
    expect(bytes.add(Buffer.alloc(60_000))).toBe('no_room');
    expect(bytes.bytes).toHaveLength(60_000);
  });
});
