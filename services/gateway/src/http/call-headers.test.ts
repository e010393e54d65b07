import { describe, expect, it } from 'vitest';
import { callHeaders, countHops } from './call-headers.js';

const TRACE = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' };

describe('callHeaders', () => {
  it.each([
    ['x-custom', true],
    ['x-request-id', true],
    ['x-a2a-extensions', true],
    ['x-forwarded-for', false],
    ['x-forwarded-anything', false],
    ['x-kubemq-caller-id', false],
    ['x-kubemq-anything', false],
    ['x-authorization', false],
    ['x-proxy-authorization', false],
    ['x-set-cookie2', false],
    ['authorization', false],
    ['user-agent', false],
    ['origin', false],
  ])('forwards %s: %j', (name, isForwarded) => {
    const headers = callHeaders({ [name]: 'v' }, TRACE, 1);
    expect(Object.keys(headers).some((key) => key.startsWith('Patchbay-Fwd-'))).toBe(isForwarded);
  });

  it('drops a value that would end its line', () => {
    for (const value of ['a\nb', 'a\rb', 'a\0b']) {
      expect(callHeaders({ 'x-a': value, accept: value }, TRACE, 1)).not.toHaveProperty('Patchbay-Fwd-x-a');
      expect(callHeaders({ accept: value }, TRACE, 1)).not.toHaveProperty('Patchbay-Fwd-accept');
    }
  });

  it('passes a tracestate on only when there is one', () => {
    expect(callHeaders({}, TRACE, 1)).not.toHaveProperty('tracestate');
    expect(callHeaders({}, { ...TRACE, tracestate: 'a=b' }, 1)).toMatchObject({ tracestate: 'a=b' });
  });
});

it.each([
  [undefined, 1],
  ['0', 1],
  ['3', 4],
  ['-1', 1],
  ['1e9', 1],
  ['9999', 1],
  ['x', 1],
])('countHops of %j is %i', (value, expected) => {
  expect(countHops(value === undefined ? {} : { 'patchbay-hops': value })).toBe(expected);
});
