import { eventually } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import type { BusAdapter } from './bus-adapter.js';
import { errorOf, NOTHING, text, words } from './contract-kit.js';

/** Publishing and subscribing. */
export function publishContract(adapter: BusAdapter): void {
  describe(`${adapter.name}: publish and subscribe`, () => {
    it('delivers to every plain subscriber and to one of each queue group, in order', async () => {
      await using pair = await adapter.createPair();
      const { caller, responder } = pair;
      const got: Record<string, string[]> = { first: [], second: [], group: [], other: [] };
      responder.subscribe('t.order', (message) => void got['first']?.push(words(message)));
      responder.subscribe('t.order', (message) => void got['second']?.push(words(message)));
      for (let member = 0; member < 3; member++) {
        responder.subscribe('t.order', (message) => void got['group']?.push(words(message)), { queue: 'group' });
      }
      responder.subscribe('t.order', (message) => void got['other']?.push(words(message)), { queue: 'other' });
      await pair.settle();
      const sent = Array.from({ length: 1_000 }, (_, index) => String(index));
      for (const body of sent) caller.publish('t.order', text(body));
      await eventually(() => Object.values(got).every((list) => list.length === 1_000));
      expect(got['first']).toEqual(sent);
      expect(got['second']).toEqual(sent);
      expect(got['other']).toEqual(sent);
      expect(got['group']?.toSorted((a, b) => Number(a) - Number(b))).toEqual(sent);
    });

    it('shares the messages of a queue group evenly', async () => {
      await using pair = await adapter.createPair();
      const counts = [0, 0, 0];
      counts.forEach((_, member) => {
        pair.responder.subscribe('t.fair', () => void counts.splice(member, 1, (counts[member] ?? 0) + 1), {
          queue: 'q',
        });
      });
      await pair.settle();
      for (let index = 0; index < 900; index++) pair.caller.publish('t.fair', NOTHING);
      await eventually(() => counts.reduce((sum, count) => sum + count) === 900);
      for (const count of counts) expect(count).toBeGreaterThan(200);
    });

    it('understands wildcards', async () => {
      await using pair = await adapter.createPair();
      const got: string[] = [];
      for (const subject of ['w.*.c', 'w.>', 'w.b.c', '*.b.*', 'w.b', 'w.b.c.>']) {
        pair.responder.subscribe(subject, (message) => void got.push(`${subject} ${message.subject}`));
      }
      await pair.settle();
      for (const subject of ['w.b.c', 'w.b', 'w', 'x.b.c', 'w.b.c.d']) pair.caller.publish(subject, NOTHING);
      pair.caller.publish('w.last', NOTHING);
      await eventually(() => got.includes('w.> w.last'));
      expect(got.filter((line) => !line.endsWith('w.last')).toSorted()).toEqual(
        [
          'w.*.c w.b.c',
          'w.> w.b.c',
          'w.b.c w.b.c',
          '*.b.* w.b.c',
          'w.b w.b',
          'w.> w.b',
          '*.b.* x.b.c',
          'w.> w.b.c.d',
          'w.b.c.> w.b.c.d',
        ].toSorted(),
      );
    });

    it('carries bytes and headers as they are', async () => {
      await using pair = await adapter.createPair();
      const bytes = Uint8Array.from({ length: 256 }, (_, value) => value);
      const headers = {
        'X-Name': 'агент ☎ 🐝',
        'X-Colon': 'a: b:c',
        'X-Empty': '',
        'x-case': 'kept',
        'X-Blank': ' a ',
      };
      const got: unknown[] = [];
      pair.responder.subscribe('t.bytes', ({ body, headers, subject, exchange }) => {
        got.push({ body: [...body], headers: { ...headers }, subject, exchange });
      });
      await pair.settle();
      pair.caller.publish('t.bytes', bytes, headers);
      await eventually(() => got.length === 1);
      expect(got).toEqual([{ body: [...bytes], headers, subject: 't.bytes', exchange: undefined }]);
    });

    it('refuses headers with line breaks and subjects that are none', async () => {
      await using pair = await adapter.createPair();
      const { caller } = pair;
      for (const value of ['a\r\nb: c', 'a\n', '\r']) {
        expect(() => caller.publish('t.x', NOTHING, { 'X-A': value })).toThrow(/line break/);
        const error = await errorOf(caller.request('t.x', NOTHING, { timeoutMs: 100, headers: { 'X-A': value } }));
        expect(error.code).toBe('invalid_argument');
      }
      for (const subject of ['', 'a..b', '.a', 'a.', 'a b', 'a\r\nb', 'a.*', 'a.>', '*']) {
        expect(() => caller.publish(subject, NOTHING)).toThrow(/subject/);
        expect((await errorOf(caller.request(subject, NOTHING, { timeoutMs: 100 }))).code).toBe('invalid_argument');
      }
      for (const subject of ['', 'a..b', 'a.>.b', 'a b', 'a.\n']) {
        expect(() => caller.subscribe(subject, () => undefined)).toThrow(/subscription/);
      }
    });

    it('keeps a failing subscriber from hurting the publisher and the others', async () => {
      await using pair = await adapter.createPair();
      let good = 0;
      pair.responder.subscribe('t.fail', () => {
        throw new Error('thrown');
      });
      pair.responder.subscribe('t.fail', () => Promise.reject(new Error('rejected')));
      pair.responder.subscribe('t.fail', () => void good++);
      await pair.settle();
      for (let index = 0; index < 10; index++) pair.caller.publish('t.fail', NOTHING);
      await eventually(() => good === 10 && pair.handlerErrors.length === 20);
    });

    it('resolves flush() when what was published has been sent', async () => {
      await using pair = await adapter.createPair();
      let got = 0;
      pair.responder.subscribe('t.flush', () => void got++);
      await pair.settle();
      for (let index = 0; index < 100; index++) pair.caller.publish('t.flush', NOTHING);
      await pair.caller.flush();
      await pair.settle();
      await eventually(() => got === 100);
    });
  });
}
