import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { scanJson } from './json-scan.js';
import type { JsonMember } from './json-scan.js';

const DEEP = 1_000;

function isValid(bytes: Uint8Array): boolean {
  const kind = scanJson(bytes, DEEP);
  expect(kind).not.toBe('too_deep');
  return kind !== 'invalid';
}

/** What the scan must agree with. */
function isParsable(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Name and value text of each member of the outermost object. */
function membersOf(text: string): [string, string][] {
  const bytes = Buffer.from(text);
  const members: JsonMember[] = [];
  scanJson(bytes, DEEP, members);
  return members.map(({ nameStart, nameEnd, start, end }) => [
    bytes.toString('utf8', nameStart, nameEnd),
    bytes.toString('utf8', start, end),
  ]);
}

describe('scanJson', () => {
  test.each([
    '',
    ' ',
    '{',
    '[',
    '"',
    '"a',
    '"\\"',
    '{}x',
    '{} {}',
    '[1,]',
    '[,1]',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{a:1}',
  ])('refuses %j', (text) => expect(isValid(Buffer.from(text))).toBe(false));

  test.each([
    '01',
    '-',
    '-a',
    '1.',
    '.5',
    '1e',
    '1e+',
    '+1',
    '0x1',
    'NaN',
    'tru',
    'nulll',
    'True',
    '"\n"',
    '"\\x"',
    '"\\u12g4"',
  ])('refuses %j', (text) => expect(isValid(Buffer.from(text))).toBe(false));

  test.each([
    '{]',
    '[}',
    '{"a":[}',
    '[{"a":1]}',
    '\ufeff{}',
    '\u00a0{}',
    '{"a":1 "b":2}',
    "{'a':1}",
    '[1 2]',
    '//\n{}',
  ])('refuses %j', (text) => expect(isValid(Buffer.from(text))).toBe(false));

  test.each([
    '0',
    '-0',
    '-0.0e-0',
    '1E5',
    '1.5e+10',
    ' \t\r\n[ ] ',
    '{ }',
    '"\\u00e9\\ud800\\/"',
    '[[],{},"",null]',
    'true',
  ])('takes %j', (text) => expect(isValid(Buffer.from(text))).toBe(true));

  it('takes whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(3), (text, indent) => {
        expect(isValid(Buffer.from(text))).toBe(true);
        expect(isValid(Buffer.from(JSON.stringify(JSON.parse(text), null, indent)))).toBe(true);
      }),
    );
  });

  it('agrees with JSON.parse on what is nearly JSON', () => {
    const piece = fc.constantFrom(
      ...Array.from('{}[]:,"\\/0123456789-+.eEaubfnrtl \n\t\u0001é'),
      'true',
      'null',
      '"a":',
      '"',
      '{"',
      '\\u00',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        expect(isValid(Buffer.from(text))).toBe(isParsable(text));
      }),
      { numRuns: 3_000 },
    );
  });

  it('agrees with JSON.parse on JSON of which one byte is another', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), fc.nat(), fc.integer({ min: 0, max: 127 }), (text, at, byte) => {
        const bytes = Buffer.from(text);
        bytes[at % bytes.length] = byte;
        if (isUtf8(bytes)) expect(isValid(bytes)).toBe(isParsable(bytes.toString()));
      }),
      { numRuns: 3_000 },
    );
  });

  it('says what the outermost value is', () => {
    expect([' {"a":[]}', '[{}]', '"a"', '1'].map((text) => scanJson(Buffer.from(text), DEEP))).toEqual([
      'object',
      'array',
      'scalar',
      'scalar',
    ]);
  });

  it('sees the depth, and only what is no string counts', () => {
    const bytes = Buffer.from('{"a":[["[[[\\"[["]]}');
    expect(scanJson(bytes, 3)).toBe('object');
    expect(scanJson(bytes, 2)).toBe('too_deep');
  });

  it('stops at the limit', () => {
    expect(scanJson(Buffer.from('['.repeat(5_000_000)), 64)).toBe('too_deep');
  });

  it('finds the members of the outermost object, and no others', () => {
    expect(membersOf(' { "a" : 1 , "b":{"c":[1,{"d":2}]}, "e":"x,y" } ')).toEqual([
      ['a', '1'],
      ['b', '{"c":[1,{"d":2}]}'],
      ['e', '"x,y"'],
    ]);
    expect(membersOf(String.raw`{"method":"a","\u006dethod":"b","é\n":0}`)).toEqual([
      ['method', '"a"'],
      [String.raw`\u006dethod`, '"b"'],
      [String.raw`é\n`, '0'],
    ]);
    expect(membersOf('[{"a":1}]')).toEqual([]);
  });

  it('reads bytes that are a part of others', () => {
    const bytes = new Uint8Array(Buffer.from('xx{"a":1}')).subarray(2);
    const members: JsonMember[] = [];
    expect(scanJson(bytes, DEEP, members)).toBe('object');
    expect(members).toEqual([{ nameStart: 2, nameEnd: 3, start: 5, end: 6 }]);
  });
});
