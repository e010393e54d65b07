import { describe, expect, test } from 'vitest';
import { isStorable } from './storable.js';

describe('what Postgres can store', () => {
  test.each([['text'], ['é😀'], ['\\u0000'], [null], [1.5], [undefined], [{ a: [{ b: 'c' }] }]])('%j', (value) => {
    expect(isStorable(value)).toBe(true);
  });

  test.each([['a\0'], ['\ud800'], ['\udc00x'], [['\0']], [{ a: { '\0': 1 } }], [{ a: [{ b: '\udfff' }] }]])(
    'not %j',
    (value) => {
      expect(isStorable(value)).toBe(false);
    },
  );
});
