import { expect, it } from 'vitest';
import { pathSegment } from './path-segment.js';

it.each([
  ['/a2a/echo', 2, 'echo'],
  ['/a2a/echo?keepalive=off', 2, 'echo'],
  ['/a2a/echo/stream', 2, 'echo'],
  ['/a2a/echo%2Fx/stream', 2, 'echo%2Fx'],
  ['/a2a/', 2, ''],
  ['/a2a', 2, ''],
  ['/a2a/?x=/y/z', 2, ''],
  ['', 2, ''],
])('pathSegment(%j, %i) is %j', (url, index, expected) => {
  expect(pathSegment(url, index)).toBe(expected);
});
