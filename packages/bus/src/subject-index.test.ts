import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SubjectIndex } from './subject-index.js';
import { isWildcard } from './subject.js';

interface Subscriber {
  readonly subject: string;
  readonly queue: string | undefined;
}

/** The rule of NATS, token by token. */
function matches(pattern: string, subject: string): boolean {
  const wanted = pattern.split('.');
  const tokens = subject.split('.');
  for (const [at, token] of wanted.entries()) {
    if (token === '>') return tokens.length > at;
    if (token !== '*' && token !== tokens[at]) return false;
    if (tokens[at] === undefined) return false;
  }
  return wanted.length === tokens.length;
}

const token = fc.constantFrom('a', 'b', 'c');
const subjects = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('.'));
const patterns = fc
  .tuple(fc.array(fc.oneof(token, fc.constant('*')), { minLength: 0, maxLength: 3 }), fc.boolean())
  .map(([tokens, rest]) => [...tokens, ...(rest || tokens.length === 0 ? ['>'] : [])].join('.'));
const subscribers = fc.record({
  subject: fc.oneof(subjects, patterns),
  queue: fc.constantFrom(undefined, 'q', 'r'),
});

describe('SubjectIndex', () => {
  it('finds who matches, whatever comes and goes', () => {
    fc.assert(
      fc.property(fc.array(subscribers), fc.array(fc.nat(20)), subjects, (all, leaving, subject) => {
        const index = new SubjectIndex<Subscriber>();
        const present = new Set<Subscriber>();
        for (const subscriber of all) {
          index.add(subscriber);
          present.add(subscriber);
          index.match(subject);
        }
        for (const at of leaving) {
          const subscriber = all[at];
          if (subscriber === undefined || !present.delete(subscriber)) continue;
          index.remove(subscriber);
        }
        expect(index.size).toBe(present.size);
        const expected = [...present].filter((subscriber) => matches(subscriber.subject, subject));
        const found = index.match(subject);
        const plain = expected.filter(({ queue }) => queue === undefined);
        expect(new Set(found?.plain ?? [])).toEqual(new Set(plain));
        expect(found?.plain.length ?? 0).toBe(plain.length);
        const names = new Set(expected.flatMap(({ queue }) => queue ?? []));
        expect(new Set(found?.groups.map(({ name }) => name))).toEqual(names);
        for (const group of found?.groups ?? []) {
          expect(new Set(group.members)).toEqual(new Set(expected.filter(({ queue }) => queue === group.name)));
        }
      }),
    );
  });

  it('takes turns exactly', () => {
    const index = new SubjectIndex<Subscriber & { id: number }>();
    for (let id = 0; id < 3; id++) index.add({ subject: 'a', queue: 'q', id });
    const group = index.match('a')?.groups[0];
    const turns = Array.from({ length: 9 }, () => group?.next()?.id);
    for (const id of [0, 1, 2]) expect(turns.filter((turn) => turn === id)).toHaveLength(3);
  });

  it('knows what is a wildcard', () => {
    for (const pattern of ['*', '>', 'a.*', '*.a', 'a.>', 'a.*.b']) expect(isWildcard(pattern)).toBe(true);
    for (const pattern of ['a', 'a.b', 'a*.b', 'a.b>']) expect(isWildcard(pattern)).toBe(false);
  });
});
