import { array, assert, constantFrom, nat, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentFailure } from './agent-failure.js';
import { EventStreamReader } from './event-stream-reader.js';

function read(chunks: readonly Uint8Array[], maxEventBytes = 1_000_000): { events: string[]; failure?: AgentFailure } {
  const events: string[] = [];
  const reader = new EventStreamReader({
    maxEventBytes,
    onEvent: ({ name, id, data }) => events.push(JSON.stringify([name ?? null, id ?? null, data.toString()])),
  });
  let failure: AgentFailure | undefined;
  for (const chunk of chunks) failure ??= reader.feed(chunk);
  failure ??= reader.finish();
  return failure === undefined ? { events } : { events, failure };
}

/** Every way to cut `bytes` in two, and every byte alone. */
function* cuts(bytes: Buffer): Generator<Buffer[]> {
  for (let at = 0; at <= bytes.length; at += 1) yield [bytes.subarray(0, at), bytes.subarray(at)];
  yield Array.from(bytes, (byte) => Buffer.of(byte));
}

const TEXT = [
  ': comment',
  'event: task.status',
  'id: 1',
  'data: {"a":"ü☺🎉"}',
  '',
  'data:no space',
  'data:  two spaces',
  'data',
  '',
  'retry: 10',
  'unknown: x',
  'event: empty',
  '',
  'event: task.done',
  'data: {}',
  '',
  '',
];
const EVENTS = [
  JSON.stringify(['task.status', '1', '{"a":"ü☺🎉"}']),
  JSON.stringify([null, null, 'no space\n two spaces\n']),
  JSON.stringify(['task.done', null, '{}']),
];

describe('an event stream', () => {
  test.each([
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ])('with %s is the same however it is cut', (_, lineEnd) => {
    for (const chunks of cuts(Buffer.from(TEXT.join(lineEnd)))) expect(read(chunks)).toEqual({ events: EVENTS });
  });

  test('with a byte order mark', () => {
    expect(read([Buffer.from('\ufeffdata: x\n\n')]).events).toHaveLength(1);
  });

  test('is the same cut anywhere, for any text', () => {
    const lines = array(string({ unit: 'grapheme' }).filter((text) => !/[\r\n\0\ufeff]/.test(text)));
    assert(
      property(lines, constantFrom('\n', '\r\n', '\r'), array(nat(400)), (texts, lineEnd, at) => {
        const events = texts.map((text) => JSON.stringify([null, null, text]));
        const bytes = Buffer.from(texts.map((text) => `data: ${text}${lineEnd}${lineEnd}`).join(''));
        const ends = [...at.filter((end) => end < bytes.length).toSorted((a, b) => a - b), bytes.length];
        const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
        expect(read(chunks)).toEqual({ events });
      }),
    );
  });

  test('tells an event as soon as its blank line has come, lone CRs too', () => {
    const seen: string[] = [];
    const reader = new EventStreamReader({ maxEventBytes: 100, onEvent: ({ data }) => seen.push(data.toString()) });
    reader.feed(Buffer.from('data: a\r\r'));
    expect(seen).toEqual(['a']);
    reader.feed(Buffer.from('\ndata: b\r\n\r'));
    expect(seen).toEqual(['a', 'b']);
  });
});

describe('an event stream that cannot go on', () => {
  const CUT = { code: 'stream_broken', detail: 'agent ended the stream in the middle of an event' };

  test.each(['data: x', 'data: x\n', 'data: ok\n\ndata', 'data: \u00e9'])(
    'ends in the middle of an event: %j',
    (text) => {
      expect(read([Buffer.from(text)]).failure).toEqual(CUT);
    },
  );

  test('ends in the middle of a character', () => {
    expect(read([Buffer.from('data: é').subarray(0, -1)]).failure).toEqual(CUT);
  });

  test.each([': comment', 'event: x', 'event: x\n', 'retry: 1'])('does not mind an end after %j', (text) => {
    expect(read([Buffer.from(`data: ok\n\n${text}`)])).toEqual({ events: [JSON.stringify([null, null, 'ok'])] });
  });

  test('is not UTF-8', () => {
    expect(read([Buffer.from('data: \xff\n\n', 'latin1')]).failure?.code).toBe('agent_bad_reply');
  });

  test('has an event of exactly the limit, and one over it', () => {
    const limit = 1_000;
    expect(read([Buffer.from(`data: ${'x'.repeat(limit)}\n\n`)], limit).events).toHaveLength(1);
    const over = Buffer.from(`data: ${'x'.repeat(limit + 1)}\n\n`);
    expect(read([over], limit)).toEqual({
      events: [],
      failure: { code: 'response_too_large', detail: `an event over ${limit} bytes` },
    });
    for (const chunks of [[over.subarray(0, 990), over.subarray(990)], Array.from(over, (byte) => Buffer.of(byte))]) {
      expect(read(chunks, limit).failure?.code).toBe('response_too_large');
    }
  });

  test('has an event that never ends: refused when it is over the limit, not held', () => {
    const reader = new EventStreamReader({ maxEventBytes: 10_000, onEvent: () => undefined });
    const chunk = Buffer.from('data: line\n');
    let fed = 0;
    while (reader.feed(chunk) === undefined) fed += chunk.length;
    expect(fed).toBeLessThan(30_000);
  });

  test('has a name that no header can take', () => {
    expect(read([Buffer.from(`event: ${'n'.repeat(1_025)}\ndata: x\n\n`)]).failure?.code).toBe('agent_bad_reply');
  });
});
