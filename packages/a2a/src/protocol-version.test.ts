import { describe, expect, test } from 'vitest';
import { readProtocolVersion } from './protocol-version.js';

describe('A2A-Version', () => {
  test.each([
    [undefined, undefined],
    ['', undefined],
    ['  ', undefined],
    ['0.3', '0.3'],
    ['0.3.0', '0.3'],
    [' 1.0 ', '1.0'],
    ['1.0', '1.0'],
    ['1.0.1', '1.0'],
    ['99.0', 'unsupported'],
    ['1', 'unsupported'],
    ['1.1', 'unsupported'],
    ['0.2.6', 'unsupported'],
    ['1.0.1.2', 'unsupported'],
    ['v1.0', 'unsupported'],
    ['1.0, 0.3', 'unsupported'],
  ])('%j means %s', (header, version) => {
    expect(readProtocolVersion(header)).toBe(version);
  });
});
