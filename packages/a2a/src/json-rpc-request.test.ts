import { describe, expect, test } from 'vitest';
import { MAX_CALL_DEPTH, readJsonRpcRequest } from './json-rpc-request.js';

function read(text: string | Uint8Array): ReturnType<typeof readJsonRpcRequest> {
  return readJsonRpcRequest(typeof text === 'string' ? Buffer.from(text) : text);
}

function nested(depth: number): string {
  return `{"jsonrpc":"2.0","id":1,"method":"x","params":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
}

function refused(code: string, idJson: string, detail: unknown): object {
  return { ok: false, code, idJson, detail };
}

describe('the id of a request', () => {
  test.each([
    ['1', '1'],
    ['"1"', '"1"'],
    ['null', 'null'],
    ['1753000000000', '1753000000000'],
    ['0', '0'],
    ['-7', '-7'],
    ['""', '""'],
    ['"st09"', '"st09"'],
    ['"ü\\u0000\\""', '"ü\\u0000\\""'],
    ['9007199254740993', '9007199254740993'],
    ['12345678901234567890', '12345678901234567890'],
    ['1.0', '1'],
    ['1.5', '1.5'],
    ['1e400', '1e400'],
  ])('%s is echoed as %s', (id, idJson) => {
    expect(read(`{"jsonrpc":"2.0","id":${id},"method":"x","params":{"id":"other"}}`)).toMatchObject({
      ok: true,
      idJson,
    });
  });

  test('absent makes a notification', () => {
    expect(read('{"jsonrpc":"2.0","method":"x"}')).toEqual({
      ok: true,
      idJson: undefined,
      method: 'x',
      timeoutMs: undefined,
    });
  });

  test.each(['{}', '[1]', 'true'])('%s is refused', (id) => {
    expect(read(`{"jsonrpc":"2.0","id":${id},"method":"x"}`)).toEqual(
      refused('invalid_argument', 'null', 'id is not a string, a number or null'),
    );
  });

  test('is echoed by a refusal', () => {
    expect(read('{"jsonrpc":"1.0","id":"a","method":"x"}')).toEqual(
      refused('invalid_argument', '"a"', 'invalid jsonrpc version'),
    );
    expect(read('{"jsonrpc":"2.0","id":7}')).toEqual(refused('invalid_argument', '7', 'missing method field'));
    expect(read('{"jsonrpc":"2.0"}')).toEqual(refused('invalid_argument', 'null', 'missing method field'));
  });
});

describe('a body that is no request', () => {
  test.each(['', ' ', '{', '{"a":}', "{'a':1}", '\ufeff{}', '{"jsonrpc":"2.0",}', 'nonsense', '{"a":1}x'])(
    '%j is no JSON',
    (text) => {
      expect(read(text)).toEqual(refused('parse_error', 'null', 'invalid JSON'));
    },
  );

  test('bytes that are not UTF-8', () => {
    const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}', 'latin1');
    expect(read(body)).toEqual(refused('parse_error', 'null', 'invalid JSON'));
  });

  test('a batch', () => {
    expect(read('[{"jsonrpc":"2.0","id":1,"method":"x"}]')).toEqual(
      refused('invalid_argument', 'null', 'batches are not supported; send one object'),
    );
  });

  test.each(['1', '"x"', 'null', 'true'])('%s', (text) => {
    expect(read(text)).toEqual(refused('invalid_argument', 'null', 'the body is not a JSON object'));
  });

  test.each(['""', '1', 'null', '{}'])('a method that is %s', (method) => {
    expect(read(`{"jsonrpc":"2.0","id":1,"method":${method}}`)).toEqual(
      refused('invalid_argument', '1', 'missing method field'),
    );
  });

  test.each(['2', '2.0', '"2"', 'null'])('a jsonrpc version of %s', (version) => {
    expect(read(`{"jsonrpc":${version},"id":1,"method":"x"}`)).toEqual(
      refused('invalid_argument', '1', 'invalid jsonrpc version'),
    );
  });

  test.each([
    '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}',
    '{"jsonrpc":"2.0","id":1,"method":"a","m\\u0065thod":"b"}',
  ])('a member given twice: %s', (text) => {
    expect(read(text)).toEqual(refused('invalid_argument', 'null', 'member "method" is given twice'));
  });

  test('a member given twice among many', () => {
    const many = Array.from({ length: 100 }, (_, at) => `"m${at}":${at}`).join(',');
    expect(read(`{"jsonrpc":"2.0","id":1,"method":"x",${many}}`)).toMatchObject({ ok: true, idJson: '1', method: 'x' });
    expect(read(`{"jsonrpc":"2.0","id":1,"method":"x",${many},"m7":0}`)).toMatchObject({
      detail: 'member "m7" is given twice',
    });
  });

  test('names and values written with escapes are what they say', () => {
    const text = String.raw`{"json\u0072pc":"\u0032.0","i\u0064":"\u0061","method":"a\/b","params":{"configuration":{"time\u006fut":2}}}`;
    expect(read(text)).toEqual({ ok: true, idJson: '"a"', method: 'a/b', timeoutMs: 2_000 });
  });

  test.each(['[', '{"a":'])('a bomb of 100,000 times %s is refused at once', (opening) => {
    const started = performance.now();
    expect(read(opening.repeat(100_000))).toMatchObject({ ok: false, code: 'parse_error', idJson: 'null' });
    expect(performance.now() - started).toBeLessThan(100);
  });

  test('nesting at the limit passes, one deeper does not', () => {
    expect(read(nested(MAX_CALL_DEPTH)).ok).toBe(true);
    expect(read(nested(MAX_CALL_DEPTH + 1))).toMatchObject({ detail: 'invalid JSON: nested deeper than 256 levels' });
  });

  test('brackets within texts do not count', () => {
    expect(read(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"t":"${'['.repeat(1_000)}"}}`).ok).toBe(true);
  });
});

describe("the caller's own time limit", () => {
  test.each([
    ['5', 5_000],
    ['0.25', 250],
    ['99999', 99_999_000],
    ['0', undefined],
    ['-1', undefined],
    ['"5"', undefined],
    ['null', undefined],
    ['1e999', undefined],
    ['{}', undefined],
  ])('params.configuration.timeout %s', (timeout, timeoutMs) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"configuration":{"timeout":${timeout}}}}`;
    expect(read(text)).toMatchObject({ ok: true, timeoutMs });
  });

  test.each(['[]', '1', 'null', '{"configuration":[5]}', '{"configuration":null}', '{"timeout":5}'])(
    'is absent in params %s',
    (params) => {
      expect(read(`{"jsonrpc":"2.0","id":1,"method":"x","params":${params}}`)).toMatchObject({
        ok: true,
        timeoutMs: undefined,
      });
    },
  );

  test('a member named __proto__ is nothing special', () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"__proto__":{"configuration":{"timeout":5}}}}';
    expect(read(text)).toMatchObject({ ok: true, timeoutMs: undefined });
    expect(({} as Record<string, unknown>)['configuration']).toBeUndefined();
  });
});
