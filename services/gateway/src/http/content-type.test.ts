import { expect, it } from 'vitest';
import { explainContentType, isJsonContentType } from './content-type.js';

it.each([
  ['application/json', true],
  ['application/json; charset=utf-8', true],
  ['Application/JSON ;charset=utf-8', true],
  ['application/json-patch+json', false],
  ['text/plain', false],
  ['', false],
  [undefined, false],
])('isJsonContentType(%j) is %j', (contentType, expected) => {
  expect(isJsonContentType(contentType)).toBe(expected);
});

it('names what came and what to send', () => {
  expect(explainContentType(undefined)).toBe('no Content-Type came; send Content-Type: application/json');
  expect(explainContentType('text/plain')).toBe('Content-Type is "text/plain"; send Content-Type: application/json');
});
