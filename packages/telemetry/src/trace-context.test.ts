import { describe, expect, it } from 'vitest';
import { isSampled, newTraceContext, readTraceContext, traceIdOf } from './trace-context.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const VALID = `00-${TRACE}-b7ad6b7169203331-01`;

describe('readTraceContext', () => {
  it('keeps a valid context', () => {
    expect(readTraceContext(VALID, undefined)).toEqual({ traceparent: VALID });
    expect(readTraceContext(VALID, 'a=b,c=d')).toEqual({ traceparent: VALID, tracestate: 'a=b,c=d' });
  });

  it.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['upper case', VALID.toUpperCase()],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    ['a span id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['another version', `ff-${TRACE}-b7ad6b7169203331-01`],
    ['a short trace id', `00-${TRACE.slice(1)}-b7ad6b7169203331-01`],
    ['something behind', `${VALID}-x`],
    ['a line break', `${VALID}\n`],
    ['two of them', `${VALID}, ${VALID}`],
  ])('starts a new, unsampled trace for %s', (_, traceparent) => {
    const context = readTraceContext(traceparent, 'a=b');
    expect(context.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    expect(context.traceparent).not.toContain(TRACE);
    expect(context.tracestate).toBeUndefined();
  });

  it('drops a tracestate that is empty or too long', () => {
    expect(readTraceContext(VALID, '')).toEqual({ traceparent: VALID });
    expect(readTraceContext(VALID, 'a'.repeat(1025))).toEqual({ traceparent: VALID });
  });
});

describe('newTraceContext', () => {
  it('never gives the same twice, over the edge of its pool of random bytes', () => {
    const contexts = new Set(Array.from({ length: 1_000 }, () => newTraceContext().traceparent));
    expect(contexts.size).toBe(1_000);
  });
});

it.each(Array.from('0123456789abcdef', (digit, value) => [value, digit] as const))(
  'reads the sampled flag (%d)',
  (value, digit) => {
    expect(isSampled({ traceparent: VALID.replace(/1$/, digit) })).toBe(value % 2 === 1);
  },
);

it('counts what is too short to have flags as not sampled', () => {
  expect(isSampled({ traceparent: '' })).toBe(false);
});

it('reads the trace id and the sampled flag', () => {
  expect(traceIdOf({ traceparent: VALID })).toBe(TRACE);
  expect(isSampled({ traceparent: VALID })).toBe(true);
  expect(isSampled({ traceparent: VALID.replace(/01$/, '03') })).toBe(true);
  expect(isSampled({ traceparent: VALID.replace(/01$/, '00') })).toBe(false);
  expect(isSampled({ traceparent: VALID.replace(/01$/, '02') })).toBe(false);
});
