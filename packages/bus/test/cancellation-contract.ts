import type { Exchange } from '@patchbay/bus';
import { eventually } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import type { BusAdapter } from './bus-adapter.js';
import {
  echo,
  errorOf,
  exchangeOf,
  isIdle,
  NOTHING,
  pass,
  pattern,
  readAll,
  serve,
  text,
  words,
} from './contract-kit.js';

/** Ends that the caller, a closing bus or the clock bring. */
export function cancellationContract(adapter: BusAdapter): void {
  describe(`${adapter.name}: cancellation`, () => {
    it('sends nothing when the signal has aborted before', async () => {
      await using pair = await adapter.createPair();
      let calls = 0;
      await serve(pair, 'x.before', () => void calls++);
      const options = { timeoutMs: 5_000, signal: AbortSignal.abort() };
      expect((await errorOf(pair.caller.request('x.before', NOTHING, options))).code).toBe('cancelled');
      expect((await errorOf(readAll(pair.caller.stream('x.before', NOTHING, options)))).code).toBe('cancelled');
      await pair.settle();
      expect(calls).toBe(0);
      expect(isIdle(pair)).toBe(true);
    });

    it.each([0, 400])('tells the responder of a request that is cancelled after %d ms', async (afterMs) => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      await serve(pair, 'x.while', (delivery) => {
        exchanges.push(exchangeOf(delivery));
        expect(exchanges[0]?.signal.aborted).toBe(false);
      });
      const controller = new AbortController();
      const error = errorOf(pair.caller.request('x.while', NOTHING, { timeoutMs: 10_000, signal: controller.signal }));
      await eventually(() => exchanges.length === 1);
      await pass(afterMs);
      controller.abort();
      expect((await error).code).toBe('cancelled');
      await eventually(() => exchanges[0]?.signal.aborted, { withinMs: 1_000 });
      exchanges[0]?.reply(NOTHING);
      await eventually(() => isIdle(pair));
    });

    it('can ask the caller whether it still waits', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      await serve(pair, 'x.confirm', (delivery) => void exchanges.push(exchangeOf(delivery)));
      const controller = new AbortController();
      const request = pair.caller.request('x.confirm', NOTHING, { timeoutMs: 10_000 });
      const left = errorOf(pair.caller.request('x.confirm', NOTHING, { timeoutMs: 10_000, signal: controller.signal }));
      const parts = pair.caller.stream('x.confirm', NOTHING, { timeoutMs: 10_000 })[Symbol.asyncIterator]();
      const part = parts.next();
      await eventually(() => exchanges.length === 3);
      const confirm = (): Promise<boolean[]> => Promise.all(exchanges.map((exchange) => exchange.confirm()));
      expect(await confirm()).toEqual([true, true, true]);
      controller.abort();
      expect((await left).code).toBe('cancelled');
      expect(await confirm()).toEqual([true, false, true]);
      exchanges[0]?.reply(text('late'));
      expect(words(await request)).toBe('late');
      await exchanges[2]?.write(text('one'));
      expect((await part).done).toBe(false);
      expect(await confirm()).toEqual([false, false, true]);
      await parts.return?.();
      await eventually(() => isIdle(pair));
    });

    it('does nothing when the signal aborts after the reply', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      await serve(pair, 'x.after', (delivery) => {
        exchanges.push(exchangeOf(delivery));
        echo(delivery);
      });
      const controller = new AbortController();
      await pair.caller.request('x.after', NOTHING, { timeoutMs: 5_000, signal: controller.signal });
      controller.abort();
      await pair.settle();
      expect(exchanges[0]?.signal.aborted).toBe(false);
    });

    it('cancels the responder when the reader leaves the loop', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      const ends: string[] = [];
      await serve(pair, 'x.left', async (delivery) => {
        const exchange = exchangeOf(delivery);
        exchanges.push(exchange);
        for (;;) {
          try {
            await exchange.write(pattern(20_000));
          } catch (error) {
            ends.push((error as { code: string }).code);
            return;
          }
        }
      });
      for await (const part of pair.caller.stream('x.left', NOTHING, { timeoutMs: 10_000 })) {
        expect(part.body.length).toBe(20_000);
        break;
      }
      await eventually(() => exchanges[0]?.signal.aborted, { withinMs: 1_000 });
      await eventually(() => ends.length === 1);
      expect(ends).toEqual(['cancelled']);
      await eventually(() => isIdle(pair));
      expect(pair.handlerErrors).toEqual([]);
    });

    it('cancels the responder when the signal aborts, read or unread', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      await serve(pair, 'x.abort', async (delivery) => {
        exchanges.push(exchangeOf(delivery));
        await exchangeOf(delivery).write(text('one'));
        await exchangeOf(delivery).write(text('two'));
      });
      for (const reads of [1, 2]) {
        const controller = new AbortController();
        const options = { timeoutMs: 10_000, signal: controller.signal };
        const parts = pair.caller.stream('x.abort', NOTHING, options)[Symbol.asyncIterator]();
        for (let read = 0; read < reads; read++) await parts.next();
        const next = reads === 2 ? parts.next() : undefined;
        next?.catch(() => undefined);
        controller.abort();
        expect((await errorOf(next ?? parts.next())).code).toBe('cancelled');
        expect((await parts.next()).done).toBe(true);
        await eventually(() => exchanges.at(-1)?.signal.aborted, { withinMs: 1_000 });
      }
      await eventually(() => isIdle(pair));
    });

    it('starts nothing for a stream that nobody reads', async () => {
      await using pair = await adapter.createPair();
      let calls = 0;
      await serve(pair, 'x.lazy', () => void calls++);
      const parts = pair.caller.stream('x.lazy', NOTHING, { timeoutMs: 1_000 })[Symbol.asyncIterator]();
      await parts.return?.();
      expect((await parts.next()).done).toBe(true);
      await pair.settle();
      expect(calls).toBe(0);
    });

    it('stops a large reply that nobody waits for', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'x.large', (delivery) => {
        exchangeOf(delivery).reply(pattern(10_000_000));
      });
      for (let round = 0; round < 5; round++) {
        const controller = new AbortController();
        const call = pair.caller.request('x.large', NOTHING, { timeoutMs: 10_000, signal: controller.signal });
        setTimeout(() => controller.abort(), round * 3);
        await call.catch(() => undefined);
      }
      await eventually(() => isIdle(pair));
    });

    it('fails what is in hand when the caller closes', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      await serve(pair, 'x.close', async (delivery) => {
        exchanges.push(exchangeOf(delivery));
        if (exchangeOf(delivery).wants === 'stream') await exchangeOf(delivery).write(text('one'));
      });
      const request = errorOf(pair.caller.request('x.close', NOTHING, { timeoutMs: 10_000 }));
      const parts = pair.caller.stream('x.close', NOTHING, { timeoutMs: 10_000 })[Symbol.asyncIterator]();
      await parts.next();
      const next = errorOf(parts.next());
      await pass(300);
      await pair.caller.close();
      await pair.caller.close();
      expect((await request).code).toBe('cancelled');
      expect((await next).code).toBe('cancelled');
      expect(pair.caller.isUp).toBe(false);
      expect((await errorOf(pair.caller.request('x.close', NOTHING, { timeoutMs: 100 }))).code).toBe('cancelled');
      expect(() => pair.caller.subscribe('x.y', () => undefined)).toThrow(/closed/);
      pair.caller.publish('x.y', NOTHING);
      await eventually(() => exchanges.every((exchange) => exchange.signal.aborted), { withinMs: 4_000 });
      await eventually(() => isIdle(pair));
    });

    it('fails what is in hand when the responder closes', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      await serve(pair, 'x.close', (delivery) => void exchanges.push(exchangeOf(delivery)));
      const request = errorOf(pair.caller.request('x.close', NOTHING, { timeoutMs: 10_000 }));
      const stream = errorOf(readAll(pair.caller.stream('x.close', NOTHING, { timeoutMs: 10_000 })));
      await eventually(() => exchanges.length === 2);
      await pair.responder.close();
      expect((await request).code).toBe('cancelled');
      expect((await stream).code).toBe('cancelled');
      expect(exchanges.map((exchange) => exchange.signal.aborted)).toEqual([true, true]);
      await eventually(() => isIdle(pair));
    });

    it('leaves nothing behind after 10,000 calls that ended in every way', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'x.ways', async (delivery) => {
        const exchange = exchangeOf(delivery);
        switch (words(delivery)) {
          case 'reply':
            exchange.reply(text('x'));
            return;
          case 'fail':
            exchange.fail('internal', 'x');
            return;
          case 'throw':
            throw new Error('x');
          case 'silent':
            return;
          default:
            for (let part = 0; part < 5; part++) await exchange.write(text('x'));
            if (words(delivery) === 'open') return;
            exchange.end();
        }
      });
      const { caller } = pair;
      const ways: (() => Promise<unknown>)[] = [
        () => caller.request('x.ways', text('reply'), { timeoutMs: 5_000 }),
        () => caller.request('x.ways', text('fail'), { timeoutMs: 5_000 }),
        () => caller.request('x.ways', text('throw'), { timeoutMs: 5_000 }),
        () => caller.request('x.ways', text('silent'), { timeoutMs: 20 }),
        () => caller.request('x.ways', text('silent'), { timeoutMs: 5_000, signal: AbortSignal.timeout(5) }),
        () => caller.request('x.nobody', text('reply'), { timeoutMs: 5_000 }),
        () => readAll(caller.stream('x.ways', text('parts'), { timeoutMs: 5_000 })),
        () => readAll(caller.stream('x.ways', text('fail'), { timeoutMs: 5_000 })),
        () => readAll(caller.stream('x.ways', text('open'), { timeoutMs: 5_000, signal: AbortSignal.timeout(5) })),
        async () => {
          for await (const part of caller.stream('x.ways', text('open'), { timeoutMs: 5_000 })) {
            if (part.body.length > 0) break;
          }
        },
      ];
      for (let round = 0; round < 20; round++) {
        const calls = Array.from({ length: 500 }, async (_, index) => ways[index % ways.length]?.());
        await Promise.allSettled(calls);
      }
      await eventually(() => isIdle(pair));
      expect(caller.stats().subscriptions + pair.responder.stats().subscriptions).toBeLessThanOrEqual(4);
    });
  });
}
