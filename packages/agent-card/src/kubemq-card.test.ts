import * as fc from 'fast-check';
import { PatchbayError } from '@patchbay/core';
import { describe, expect, it } from 'vitest';
import type { AgentRecord, RegisteredAgent } from './agent-record.js';
import { KUBEMQ_MEMBERS, projectKubemqCard } from './kubemq-card.js';
import { readKubemqCard } from './read-kubemq-card.js';

const LIMITS = { maxBytes: 262_144 };
const MINIMAL = { agent_id: 'echo-01', name: 'Echo', url: 'http://localhost:8080/' };

function read(card: unknown): AgentRecord {
  return readKubemqCard(Buffer.from(JSON.stringify(card)), LIMITS);
}

function registered(record: AgentRecord): RegisteredAgent {
  return { record, ordinal: 1, revision: 2, registeredAtMs: 0, lastSeenMs: 60_250 };
}

function refusal(card: unknown): PatchbayError {
  return refusalOf(Buffer.from(typeof card === 'string' ? card : JSON.stringify(card)));
}

function refusalOf(bytes: Uint8Array): PatchbayError {
  try {
    readKubemqCard(bytes, LIMITS);
  } catch (error) {
    if (error instanceof PatchbayError) return error;
    throw error;
  }
  throw new Error('the card was accepted');
}

describe('readKubemqCard', () => {
  it('fills in the defaults', () => {
    expect(read(MINIMAL)).toEqual({
      agentId: 'echo-01',
      dialect: 'kubemq',
      name: 'Echo',
      description: '',
      version: '',
      url: 'http://localhost:8080/',
      skills: [],
      defaultInputModes: ['text'],
      defaultOutputModes: ['text'],
      protocolVersions: ['1.0'],
      interfaces: [{ url: 'http://localhost:8080/', binding: 'JSONRPC', protocolVersion: '1.0' }],
      extra: {},
    });
  });

  it('takes optional members given as null for absent', () => {
    const optional = [
      'description',
      'version',
      'skills',
      'defaultInputModes',
      'defaultOutputModes',
      'protocolVersions',
    ];
    const card = { ...MINIMAL, ...Object.fromEntries(optional.map((name) => [name, null])) };
    expect(read(card)).toEqual(read(MINIMAL));
  });

  it('keeps unknown members, null too, at the top and inside skills', () => {
    const record = read({
      ...MINIMAL,
      provider: { organization: 'ACME' },
      note: null,
      skills: [{ id: 's', name: 'S', examples: ['a'], tags: ['x'], weight: null }],
    });
    expect(record.extra).toEqual({ provider: { organization: 'ACME' }, note: null });
    expect(record.skills).toEqual([
      { id: 's', name: 'S', description: '', tags: ['x'], examples: ['a'], weight: null },
    ]);
  });

  it("ignores the server's members", () => {
    const record = read({ ...MINIMAL, registered_at: 'x', last_seen: 5, registered_by: 'mallory' });
    expect(record).toEqual(read(MINIMAL));
  });

  it('makes one interface of each protocol version, a bounded number of them', () => {
    expect(read({ ...MINIMAL, protocolVersions: ['1.0', '0.3', '1.0'] }).interfaces).toEqual([
      { url: MINIMAL.url, binding: 'JSONRPC', protocolVersion: '1.0' },
      { url: MINIMAL.url, binding: 'JSONRPC', protocolVersion: '0.3' },
    ]);
    expect(read({ ...MINIMAL, protocolVersions: [] })).toMatchObject({
      protocolVersions: [],
      interfaces: [{ protocolVersion: '1.0' }],
    });
    const versions = Array.from({ length: 1_000 }, (_, index) => `${index}.0`);
    const record = read({ ...MINIMAL, protocolVersions: versions });
    expect(record.protocolVersions).toEqual(versions);
    expect(record.interfaces).toHaveLength(16);
  });

  it.each([
    ['ab', true],
    ['-', false],
    ['--', true],
    ['-a-', true],
    ['a', false],
    ['a'.repeat(128), true],
    ['a'.repeat(129), false],
    ['A1', false],
    ['a..b', false],
    ['a>', false],
    ['*', false],
    ['a b', false],
    ['агент', false],
    ['__proto__', false],
    ['echo\n', false],
    ['', false],
    [5, false],
    [null, false],
  ])('agent_id %j is accepted: %s', (agentId, isAccepted) => {
    const card = { ...MINIMAL, agent_id: agentId };
    if (isAccepted) expect(read(card).agentId).toBe(agentId);
    else expect(refusal(card).message).toMatch(/^agent_id must be 2-128 characters of a-z, 0-9 and "-"; got /);
  });

  it('names the field, the rule and the value', () => {
    expect(refusal({ ...MINIMAL, agent_id: 'My Agent' })).toMatchObject({
      code: 'invalid_argument',
      message: 'agent_id must be 2-128 characters of a-z, 0-9 and "-"; got "My Agent"',
      details: { field: 'agent_id' },
    });
    expect(refusal({ name: 'x', url: 'http://h/' }).message).toMatch(/; got nothing$/);
    expect(refusal({ ...MINIMAL, name: '' }).message).toBe('name must be a string of 1-256 characters; got ""');
    const long = refusal({ ...MINIMAL, name: 'n'.repeat(257) }).message;
    expect(long).toMatch(/^name must be a string of 1-256 characters; got "n{79}…" \(257 characters\)$/);
  });

  it('counts characters, not UTF-16 units', () => {
    expect(read({ ...MINIMAL, name: '🦊'.repeat(256) }).name).toHaveLength(512);
    expect(refusal({ ...MINIMAL, name: '🦊'.repeat(257) }).message).toContain('(257 characters)');
  });

  it.each([
    [{ description: 'd'.repeat(2049) }, /^description must be a string of at most 2048 characters/],
    [{ description: 5 }, /^description must be a string of at most 2048 characters; got 5$/],
    [{ version: 'v'.repeat(65) }, /^version must be a string of at most 64 characters/],
    [{ version: 1.5 }, /^version must be a string of at most 64 characters; got 1\.5$/],
    [{ name: ['x'] }, /^name must be a string of 1-256 characters; got an array of 1$/],
    [{ skills: {} }, /^skills must be an array; got an object$/],
    [{ skills: [null] }, /^skills\[0\] must be a JSON object; got null$/],
    [{ skills: ['x'] }, /^skills\[0\] must be a JSON object; got "x"$/],
    [{ skills: [{ name: 'S' }] }, /^skills\[0\]\.id must be a non-empty string; got nothing$/],
    [{ skills: [{ id: '', name: 'S' }] }, /^skills\[0\]\.id must be a non-empty string; got ""$/],
    [{ skills: [{ id: 's' }] }, /^skills\[0\]\.name must be a non-empty string; got nothing$/],
    [{ skills: [{ id: 's', name: 'S', description: 1 }] }, /^skills\[0\]\.description must be a string; got 1$/],
    [{ skills: [{ id: 's', name: 'S', tags: 'x' }] }, /^skills\[0\]\.tags must be an array; got "x"$/],
    [{ skills: [{ id: 's', name: 'S', tags: ['x', 1] }] }, /^skills\[0\]\.tags\[1\] must be a string; got 1$/],
    [{ defaultInputModes: 'text' }, /^defaultInputModes must be an array; got "text"$/],
    [{ defaultOutputModes: [true] }, /^defaultOutputModes\[0\] must be a string; got true$/],
    [{ protocolVersions: [1.0] }, /^protocolVersions\[0\] must be a string; got 1$/],
  ])('refuses %j', (members, message) => {
    const error = refusal({ ...MINIMAL, ...members });
    expect(error.code).toBe('invalid_argument');
    expect(error.message).toMatch(message);
  });

  it('takes the longest texts', () => {
    const card = { ...MINIMAL, name: 'n'.repeat(256), description: 'd'.repeat(2048), version: 'v'.repeat(64) };
    expect(read(card)).toMatchObject({ name: card.name, description: card.description, version: card.version });
    const url = `http://h/${'p'.repeat(2048 - 9)}`;
    expect(read({ ...MINIMAL, url }).url).toBe(url);
  });

  it.each([
    'http://localhost:18080/',
    'HTTP://LOCALHOST',
    'https://10.0.0.7:8080/a2a?x=1#f',
    'http://[::1]:8080/invoke',
    'http://агент.example/',
    'http://169.254.169.254/',
  ])('takes the url %s exactly as it is', (url) => {
    expect(read({ ...MINIMAL, url }).url).toBe(url);
  });

  it.each([
    '/relative/path',
    'localhost:8080',
    '//host/path',
    'ftp://host/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http:host',
    'http://',
    'http:///path',
    'http://:8080/',
    'http://host:99999/',
    'http://ex ample/',
    ' http://host/',
    'http://host/\r\nX: y',
    'http:\\\\host\\',
    'http://[::1/',
    `http://h/${'p'.repeat(2049 - 9)}`,
    '',
    5,
    null,
    undefined,
  ])('refuses the url %j', (url) => {
    const error = refusal({ ...MINIMAL, url });
    expect(error.code).toBe('invalid_argument');
    expect(error.message).toMatch(/^url must be /);
  });

  it('never repeats credentials', () => {
    const url = refusal({ ...MINIMAL, url: 'ftp://user:hunter2@host/' }).message;
    expect(url).toContain('"ftp://***@host/"');
    const bearer = refusal({ ...MINIMAL, version: `Bearer ${'x'.repeat(60)} and more` }).message;
    expect(bearer).not.toContain('xxx');
  });

  it.each([
    ['[]', 'invalid_argument', 'the card must be a JSON object; got an array of 0'],
    ['null', 'invalid_argument', 'the card must be a JSON object; got null'],
    ['"text"', 'invalid_argument', 'the card must be a JSON object; got "text"'],
    ['{"agent_id":"a1","agent_id":"a2"}', 'invalid_argument', 'agent_id is given twice'],
    ['{"__proto__":{}}', 'invalid_argument', 'is not allowed as a member name'],
    ['{"name":"\\u0000"}', 'invalid_argument', 'name contains U+0000'],
    ['{"name":"\\ud800"}', 'invalid_argument', 'name contains a lone surrogate'],
    ['{', 'parse_error', 'not valid JSON'],
    ['', 'parse_error', 'not valid JSON'],
    [`{"x":${'['.repeat(100_000)}`, 'invalid_argument', 'nested deeper than 64'],
  ])('refuses the body %.40s', (body, code, message) => {
    const error = refusal(body);
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
  });

  it('refuses what is not UTF-8, and what is too large before it looks inside', () => {
    expect(refusalOf(Uint8Array.of(0x7b, 0xff, 0x7d)).code).toBe('parse_error');
    expect(refusalOf(new Uint8Array(LIMITS.maxBytes + 1)).code).toBe('request_too_large');
  });
});

describe('projectKubemqCard', () => {
  it('gives the whole card, members in order, timestamps that sort as strings', () => {
    const card = projectKubemqCard(registered(read({ provider: 'ACME', ...MINIMAL })));
    expect(JSON.stringify(card)).toBe(
      '{"agent_id":"echo-01","name":"Echo","description":"","version":"","url":"http://localhost:8080/","skills":[],' +
        '"defaultInputModes":["text"],"defaultOutputModes":["text"],"protocolVersions":["1.0"],"provider":"ACME",' +
        '"registered_at":"1970-01-01T00:00:00.000Z","last_seen":"1970-01-01T00:01:00.250Z"}',
    );
  });

  it('lets no unknown member replace ours', () => {
    const record = read(MINIMAL);
    const card = projectKubemqCard(registered({ ...record, extra: { agent_id: 'other', last_seen: 'never', x: 1 } }));
    expect(card).toMatchObject({ agent_id: 'echo-01', last_seen: '1970-01-01T00:01:00.250Z', x: 1 });
  });
});

const text = (maxLength: number, minLength = 0) =>
  fc.string({ unit: 'binary', minLength, maxLength }).filter(isStorable);
const json = fc.jsonValue({ maxDepth: 3 }).filter((value) => isStorable(JSON.stringify(value)));
const name = text(20, 1).filter((candidate) => candidate !== '__proto__');
const skill = fc
  .record({ id: text(20, 1), name: text(20, 1), description: text(50), tags: fc.array(text(10)) })
  .chain((known) => fc.dictionary(name, json, { maxKeys: 3 }).map((extra) => ({ ...extra, ...known })));
const card = fc
  .record(
    {
      agent_id: fc.stringMatching(/^[a-z0-9-]{2,128}$/),
      name: text(256, 1),
      url: fc.webUrl({ validSchemes: ['http', 'https'], withQueryParameters: true, withFragments: true }),
      description: text(300),
      version: text(64),
      skills: fc.array(skill, { maxLength: 3 }),
      defaultInputModes: fc.array(text(10), { maxLength: 3 }),
      defaultOutputModes: fc.array(text(10), { maxLength: 3 }),
      protocolVersions: fc.array(text(5), { maxLength: 3 }),
    },
    { requiredKeys: ['agent_id', 'name', 'url'] },
  )
  .chain((known) => fc.dictionary(name, json, { maxKeys: 4 }).map((extra) => ({ ...without(extra), ...known })));

function isStorable(value: string): boolean {
  return value.isWellFormed() && !/\0|\\u0000|\\ud[89a-f]/i.test(value);
}

function without(extra: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra).filter(([member]) => !KUBEMQ_MEMBERS.has(member)));
}

describe('any card', () => {
  it('keeps every member from reading to projecting', () => {
    fc.assert(
      fc.property(card, (sent) => {
        const wire = JSON.stringify(sent);
        const shown: unknown = JSON.parse(JSON.stringify(projectKubemqCard(registered(read(sent)))));
        expect(shown).toMatchObject(JSON.parse(wire) as Record<string, unknown>);
      }),
    );
  });

  it('never fails with anything but a PatchbayError, whatever comes', () => {
    const member = fc.oneof(json, fc.constant(undefined));
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((body) => Buffer.from(body)),
      fc
        .record(
          Object.fromEntries([...KUBEMQ_MEMBERS].map((known) => [known, member])) as Record<string, typeof member>,
        )
        .map((body) => Buffer.from(JSON.stringify({ ...MINIMAL, ...body }))),
    );
    fc.assert(
      fc.property(hostile, (bytes) => {
        try {
          readKubemqCard(bytes, LIMITS);
        } catch (error) {
          expect(error).toBeInstanceOf(PatchbayError);
          expect((error as PatchbayError).code).toMatch(/^(invalid_argument|parse_error)$/);
          expect((error as PatchbayError).message.length).toBeLessThan(1_000);
        }
      }),
      { numRuns: 500 },
    );
  });
});
