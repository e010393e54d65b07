import { expect, it } from 'vitest';
import { callTarget } from './call-target.js';

it.each([
  ['POST', '/a2a/echo', 'echo'],
  ['POST', '/a2a/echo?keepalive=off&x=/y', 'echo'],
  ['POST', '/a2a/', ''],
  ['POST', '/a2a/?x', ''],
  ['POST', '/a2a/%65cho', '%65cho'],
  ['POST', '/a2a/a%2Fb', 'a%2Fb'],
  ['POST', '/a2a/echo/', undefined],
  ['POST', '/a2a/echo/stream', undefined],
  ['POST', '/a2a', undefined],
  ['POST', '/%612a/echo', undefined],
  ['POST', '//a2a/echo', undefined],
  ['POST', 'http://x/a2a/echo', undefined],
  ['GET', '/a2a/echo', undefined],
])('%s %s', (method, url, expected) => {
  expect(callTarget({ method, url })).toBe(expected);
});
