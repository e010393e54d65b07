import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PatchbayError } from './patchbay-error.js';
import { parseStrictJson } from './strict-json.js';

function codeOf(text: string | Buffer): string {
  try {
    parseStrictJson(Buffer.from(text));
    return 'accepted';
  } catch (error) {
    if (!(error instanceof PatchbayError)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

describe('parseStrictJson', () => {
  test.each([
    ['{"a":1,"a":2}', 'invalid_argument: a is given twice; name each member once'],
    ['{"x":[{"b":1},{"b":1,"b":2}]}', 'invalid_argument: x[1].b is given twice; name each member once'],
    [String.raw`{"a":1,"\u0061":2}`, 'invalid_argument: a is given twice; name each member once'],
    ['{"__proto__":{}}', 'invalid_argument: __proto__ is not allowed as a member name'],
    [String.raw`{"n":"a\u0000"}`, 'invalid_argument: n contains U+0000'],
    [String.raw`{"n":["\ud83d"]}`, 'invalid_argument: n[0] contains a lone surrogate; it is not valid Unicode'],
    [String.raw`{"\u0000":1}`, 'invalid_argument: \0 contains U+0000'],
    [`${'['.repeat(65)}${']'.repeat(65)}`, 'invalid_argument: the JSON is nested deeper than 64 levels'],
    ['['.repeat(1_000_000), 'invalid_argument: the JSON is nested deeper than 64 levels'],
  ])('refuses %.60s', (text, expected) => {
    expect(codeOf(text)).toBe(expected);
  });

  test.each(['', '{', '{"a"}', "{'a':1}", 'nul', '{"a":1}x'])('%j is not JSON', (text) => {
    expect(codeOf(text)).toMatch(/^parse_error: the body is not valid JSON/);
  });

  test('bytes that are not UTF-8 are refused', () => {
    expect(codeOf(Buffer.from([0x22, 0xff, 0x22]))).toMatch(/^parse_error: the body is not valid UTF-8/);
  });

  test('a name that stands again in another object, or as a value, is fine', () => {
    expect(codeOf('{"a":{"a":"a"},"b":["a",{"a":1}],"c":"a"}')).toBe('accepted');
  });

  test('what it accepts it reads as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = JSON.stringify(value);
        const outcome = codeOf(text);
        if (outcome === 'accepted') expect(parseStrictJson(Buffer.from(text))).toEqual(JSON.parse(text));
        else expect(outcome).toMatch(/__proto__|U\+0000|surrogate|nested/);
      }),
    );
  });

  test('garbage never throws anything but a PatchbayError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        codeOf(Buffer.from(bytes));
      }),
    );
  });
});
