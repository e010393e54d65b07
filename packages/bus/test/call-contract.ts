import { DeadlineExceededError, NoRespondersError, RemoteError } from '@patchbay/bus';
import type { Delivery, Exchange } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import { eventually } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import type { BusAdapter } from './bus-adapter.js';
import {
  echo,
  errorOf,
  exchangeOf,
  header,
  isIdle,
  NOTHING,
  pass,
  pattern,
  readAll,
  serve,
  text,
  words,
} from './contract-kit.js';

/** Requests with one reply. */
export function callContract(adapter: BusAdapter): void {
  describe(`${adapter.name}: request`, () => {
    it('brings the reply with its bytes and headers', async () => {
      await using pair = await adapter.createPair();
      let wants: string | undefined;
      await serve(pair, 'c.echo', (delivery) => {
        wants = exchangeOf(delivery).wants;
        echo(delivery);
      });
      const headers = { 'A2A-Version': '1.0', 'X-Name': 'агент' };
      const reply = await pair.caller.request('c.echo', text('hello'), { timeoutMs: 5_000, headers });
      expect(words(reply)).toBe('hello');
      expect({ ...reply.headers }).toEqual(headers);
      expect(wants).toBe('unary');
      const empty = await pair.caller.request('c.echo', NOTHING, { timeoutMs: 5_000 });
      expect(empty.body.length).toBe(0);
    });

    it('says at once that nobody serves a subject', async () => {
      await using pair = await adapter.createPair();
      const begin = performance.now();
      const error = await errorOf(pair.caller.request('c.nobody', NOTHING, { timeoutMs: 10_000 }));
      expect(error).toBeInstanceOf(NoRespondersError);
      expect(error.code).toBe('no_dispatcher');
      expect(error.retryable).toBe(true);
      const streamError = await errorOf(readAll(pair.caller.stream('c.nobody', NOTHING, { timeoutMs: 10_000 })));
      expect(streamError).toBeInstanceOf(NoRespondersError);
      expect(performance.now() - begin).toBeLessThan(500);
    });

    it('ends at the deadline, which the responder knows and its signal does not', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      let leftMs = 0;
      await serve(pair, 'c.silent', (delivery) => {
        const exchange = exchangeOf(delivery);
        exchanges.push(exchange);
        leftMs = exchange.deadlineMs - performance.now();
        expect(exchange.signal.aborted).toBe(false);
      });
      const begin = performance.now();
      const error = await errorOf(pair.caller.request('c.silent', NOTHING, { timeoutMs: 300 }));
      const tookMs = performance.now() - begin;
      expect(error).toBeInstanceOf(DeadlineExceededError);
      expect(tookMs).toBeGreaterThanOrEqual(299);
      expect(tookMs).toBeLessThan(450);
      expect(leftMs).toBeGreaterThan(200);
      expect(leftMs).toBeLessThanOrEqual(301);
      await eventually(() => isIdle(pair));
      expect(exchanges[0]?.signal.aborted).toBe(false);
      exchanges[0]?.reply(text('too late'));
    });

    it('answers after seconds of silence when there is time', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.slow', async (delivery) => {
        await pass(4_500);
        exchangeOf(delivery).reply(text('at last'));
      });
      expect(words(await pair.caller.request('c.slow', NOTHING, { timeoutMs: 20_000 }))).toBe('at last');
    });

    it('brings the error that the responder words', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.fail', (delivery) => {
        exchangeOf(delivery).fail('agent_not_found', 'no such agent: агент\nsecond line', text('{"error":1}'));
      });
      const error = await errorOf(pair.caller.request('c.fail', NOTHING, { timeoutMs: 5_000 }));
      expect(error).toBeInstanceOf(RemoteError);
      expect(error.code).toBe('agent_not_found');
      expect(error.message).toMatch(/^no such agent: агент/);
      expect(words({ body: (error as RemoteError).body })).toBe('{"error":1}');
    });

    it('brings what the responder says beside its error', async () => {
      await using pair = await adapter.createPair();
      const headers = { 'Patchbay-Node': 'node-1', 'X-Name': 'агент' };
      await serve(pair, 'c.refuse', async (delivery) => {
        const exchange = exchangeOf(delivery);
        if (words(delivery) === 'late') await exchange.write(text('a part'));
        exchange.fail('concurrency_exceeded', 'full', text('{}'), headers);
      });
      await serve(pair, 'c.relay', () => {
        throw new RemoteError('draining', 'going', text('{}'), headers);
      });
      const errors = [
        await errorOf(pair.caller.request('c.refuse', NOTHING, { timeoutMs: 5_000 })),
        await errorOf(readAll(pair.caller.stream('c.refuse', NOTHING, { timeoutMs: 5_000 }))),
        await errorOf(readAll(pair.caller.stream('c.refuse', text('late'), { timeoutMs: 5_000 }))),
        await errorOf(pair.caller.request('c.relay', NOTHING, { timeoutMs: 5_000 })),
      ];
      for (const error of errors) expect({ ...(error as RemoteError).headers }).toEqual(headers);
      await eventually(() => isIdle(pair));
    });

    it('refuses an error with a line break in a header, and lets the exchange fail', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.badrefusal', (delivery) => {
        exchangeOf(delivery).fail('internal', 'x', NOTHING, { 'X-A': 'a\r\nPatchbay-Caller: admin' });
      });
      const error = await errorOf(pair.caller.request('c.badrefusal', NOTHING, { timeoutMs: 5_000 }));
      expect(error.code).toBe('invalid_argument');
    });

    it('turns what a handler throws into the error of the call', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.throws', (delivery) => {
        const how = words(delivery);
        const error = how.startsWith('known')
          ? new PatchbayError('agent_limit_reached', 'the limit is 3')
          : new Error('secret');
        if (how.endsWith('async')) return Promise.reject(error);
        throw error;
      });
      for (const how of ['known', 'known async']) {
        const error = await errorOf(pair.caller.request('c.throws', text(how), { timeoutMs: 5_000 }));
        expect(error).toMatchObject({ code: 'agent_limit_reached', message: 'the limit is 3' });
      }
      for (const how of ['unknown', 'unknown async']) {
        const error = await errorOf(pair.caller.request('c.throws', text(how), { timeoutMs: 5_000 }));
        expect(error).toMatchObject({ code: 'internal', message: 'internal error' });
      }
      expect(pair.handlerErrors).toHaveLength(4);
    });

    it('lets a reply with a line break in a header fail, not through', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.badheader', (delivery) => {
        exchangeOf(delivery).reply(NOTHING, { 'X-A': 'a\r\nPatchbay-Caller: admin' });
      });
      const error = await errorOf(pair.caller.request('c.badheader', NOTHING, { timeoutMs: 5_000 }));
      expect(error.code).toBe('invalid_argument');
    });

    it('counts the first end of an exchange and ignores the others', async () => {
      await using pair = await adapter.createPair();
      let late: Promise<unknown> | undefined;
      await serve(pair, 'c.twice', (delivery) => {
        const exchange = exchangeOf(delivery);
        exchange.reply(text('first'));
        exchange.reply(text('second'));
        exchange.fail('internal', 'third');
        exchange.end();
        late = exchange.write(text('fourth'));
        late.catch(() => undefined);
      });
      expect(words(await pair.caller.request('c.twice', NOTHING, { timeoutMs: 5_000 }))).toBe('first');
      expect((await errorOf(late ?? Promise.resolve())).code).toBe('cancelled');
    });

    it('takes one written part as the reply', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.parts', async (delivery) => {
        const exchange = exchangeOf(delivery);
        const count = Number(words(delivery));
        for (let part = 0; part < count; part++) await exchange.write(text(`part ${part}`), { 'X-Part': String(part) });
        exchange.end();
      });
      const ask = (count: string) => pair.caller.request('c.parts', text(count), { timeoutMs: 5_000 });
      const one = await ask('1');
      expect([words(one), header(one, 'X-Part')]).toEqual(['part 0', '0']);
      expect((await ask('0')).body.length).toBe(0);
      expect((await errorOf(ask('2'))).code).toBe('internal');
      await eventually(() => isIdle(pair));
    });

    it.each([65_407, 65_408, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 1_048_576, 5_000_000])(
      'carries a request and its reply of %d bytes',
      async (length) => {
        await using pair = await adapter.createPair();
        await serve(pair, 'c.large', echo);
        const body = pattern(length);
        const headers = { 'X-Kept': 'yes' };
        const reply = await pair.caller.request('c.large', body, { timeoutMs: 20_000, headers });
        expect(reply.body.length).toBe(length);
        expect(Buffer.compare(reply.body, body)).toBe(0);
        expect(header(reply, 'X-Kept')).toBe('yes');
        await eventually(() => isIdle(pair));
      },
    );

    it('carries ten replies of 10 MB at once beside small ones', async () => {
      await using pair = await adapter.createPair();
      const body = pattern(10 * 1024 * 1024);
      await serve(pair, 'c.huge', (delivery) => {
        exchangeOf(delivery).reply(body);
      });
      await serve(pair, 'c.small', echo);
      const large = Array.from({ length: 10 }, () => pair.caller.request('c.huge', NOTHING, { timeoutMs: 30_000 }));
      const small = Array.from({ length: 100 }, () => pair.caller.request('c.small', text('x'), { timeoutMs: 30_000 }));
      await Promise.all(small);
      for (const reply of await Promise.all(large)) expect(Buffer.compare(reply.body, body)).toBe(0);
      await eventually(() => isIdle(pair));
    });

    it('keeps a thousand calls in flight apart', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'c.many', async (delivery) => {
        await pass(Math.random() * 50);
        echo(delivery);
      });
      const calls = Array.from({ length: 1_000 }, async (_, index) => {
        const reply = await pair.caller.request('c.many', text(String(index)), { timeoutMs: 20_000 });
        return words(reply);
      });
      expect(await Promise.all(calls)).toEqual(Array.from({ length: 1_000 }, (_, index) => String(index)));
    });

    it('shares calls between the members of a queue group and answers from wildcards', async () => {
      await using pair = await adapter.createPair();
      const counts = { left: 0, right: 0 };
      const count = (side: 'left' | 'right') => (delivery: Delivery) => {
        counts[side]++;
        echo(delivery);
      };
      pair.responder.subscribe('c.shared.*', count('left'), { queue: 'q' });
      await serve(pair, 'c.shared.>', count('right'));
      for (let index = 0; index < 200; index++) await pair.caller.request('c.shared.x', NOTHING, { timeoutMs: 5_000 });
      expect(counts.left + counts.right).toBe(200);
      expect(Math.min(counts.left, counts.right)).toBeGreaterThan(50);
    });

    it('takes the first answer when plain subscribers overhear a call', async () => {
      await using pair = await adapter.createPair();
      let overheard = 0;
      pair.responder.subscribe('c.heard', () => void overheard++);
      await serve(pair, 'c.heard', async (delivery) => {
        await pass(10);
        echo(delivery);
      });
      for (let index = 0; index < 5; index++) await pair.caller.request('c.heard', NOTHING, { timeoutMs: 5_000 });
      expect(overheard).toBe(5);
    });
  });
}
