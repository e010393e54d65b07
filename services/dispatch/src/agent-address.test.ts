import { describe, expect, test } from 'vitest';
import { parseAgentAddress } from './agent-address.js';

describe('a registered URL', () => {
  test.each([
    ['http://localhost:8080', 'http://localhost:8080', '/'],
    ['http://localhost:8080/', 'http://localhost:8080', '/'],
    ['http://localhost:80/a2a', 'http://localhost', '/a2a'],
    ['http://h/a2a/', 'http://h', '/a2a/'],
    ['http://h/a/../b/./c', 'http://h', '/a/../b/./c'],
    ['http://h//double', 'http://h', '//double'],
    ['http://h?x=1&y=%2F', 'http://h', '/?x=1&y=%2F'],
    ['http://h/p?x={y}|z#fragment', 'http://h', '/p?x={y}|z'],
    ['http://h/%7Eme', 'http://h', '/%7Eme'],
    ['HTTPS://Example.COM:8443/X', 'https://example.com:8443', '/X'],
    ['http://user:secret@h:1/p', 'http://h:1', '/p'],
    ['http://[::1]:9/p', 'http://[::1]:9', '/p'],
    ['http://h/sp ace', 'http://h', '/sp%20ace'],
    ['http://h/straße', 'http://h', '/stra%C3%9Fe'],
    ['http://h\\back', 'http://h', '/back'],
  ])('%s', (url, origin, path) => {
    expect(parseAgentAddress(url)).toMatchObject({ origin, path });
  });

  test('has the port of its scheme unless it says one', () => {
    expect(parseAgentAddress('http://h/').port).toBe(80);
    expect(parseAgentAddress('https://h/').port).toBe(443);
    expect(parseAgentAddress('https://h:8443/').port).toBe(8443);
  });
});
