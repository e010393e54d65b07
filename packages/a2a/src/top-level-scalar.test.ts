import { describe, expect, test } from 'vitest';
import { topLevelScalar } from './top-level-scalar.js';

describe('a scalar member of the outermost object', () => {
  test.each([
    ['{"id":1}', '1'],
    ['{ "a" : {"id":2}, "id" : 12345678901234567890 }', '12345678901234567890'],
    ['{"a":["id",{"id":3}],"id":1.0}', '1.0'],
    ['{"x":"id\\":9","id":-0}', '-0'],
    ['{"\\u0069d":1e400}', '1e400'],
    ['{"id":"a\\"b"}', '"a\\"b"'],
    ['{"id":null}', 'null'],
    ['{"a":"id"}', undefined],
    ['{}', undefined],
  ])('of %s is %s', (text, value) => {
    expect(topLevelScalar(text, 'id')).toBe(value);
  });
});
