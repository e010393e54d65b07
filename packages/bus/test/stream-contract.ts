import { RemoteError } from '@patchbay/bus';
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

/** Streams of replies. */
export function streamContract(adapter: BusAdapter): void {
  describe(`${adapter.name}: stream`, () => {
    it('brings every part once, whole and in order, and ends', async () => {
      await using pair = await adapter.createPair();
      let wants: string | undefined;
      await serve(pair, 's.order', async (delivery) => {
        const exchange = exchangeOf(delivery);
        wants = exchange.wants;
        for (let part = 0; part < 5_000; part++) await exchange.write(text(String(part)), { 'X-Part': String(part) });
        exchange.end();
      });
      const parts = await readAll(pair.caller.stream('s.order', NOTHING, { timeoutMs: 20_000 }));
      expect(parts.map(words)).toEqual(Array.from({ length: 5_000 }, (_, part) => String(part)));
      expect(parts.map((part) => header(part, 'X-Part'))).toEqual(parts.map(words));
      expect(wants).toBe('stream');
      await eventually(() => isIdle(pair));
    });

    it('carries parts of every size', async () => {
      await using pair = await adapter.createPair();
      const sizes = [0, 1, 65_536, 262_144, 0, 262_145, 1_000_000, 3_000_000, 5];
      await serve(pair, 's.sizes', async (delivery) => {
        for (const size of sizes) await exchangeOf(delivery).write(pattern(size), { 'X-Size': String(size) });
        exchangeOf(delivery).end();
      });
      const parts = await readAll(pair.caller.stream('s.sizes', NOTHING, { timeoutMs: 20_000 }));
      expect(parts.map((part) => part.body.length)).toEqual(sizes);
      for (const part of parts) expect(Buffer.compare(part.body, pattern(part.body.length))).toBe(0);
      await eventually(() => isIdle(pair));
    });

    it('may be written without waiting, ended without a part, or answered by one reply', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 's.ways', (delivery) => {
        const exchange = exchangeOf(delivery);
        if (words(delivery) === 'eager') {
          for (let part = 0; part < 100; part++) exchange.write(pattern(10_000)).catch(() => undefined);
          exchange.end();
        } else if (words(delivery) === 'empty') exchange.end();
        else exchange.reply(pattern(Number(words(delivery))));
      });
      const lengths = async (way: string): Promise<number[]> =>
        (await readAll(pair.caller.stream('s.ways', text(way), { timeoutMs: 10_000 }))).map((part) => part.body.length);
      expect(await lengths('eager')).toEqual(Array.from({ length: 100 }, () => 10_000));
      expect(await lengths('empty')).toEqual([]);
      expect(await lengths('10')).toEqual([10]);
      expect(await lengths('2000000')).toEqual([2_000_000]);
      await eventually(() => isIdle(pair));
    });

    it('throws the error of the responder after the parts before it', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 's.fail', async (delivery) => {
        const exchange = exchangeOf(delivery);
        const count = Number(words(delivery));
        for (let part = 0; part < count; part++) await exchange.write(text(String(part)));
        exchange.fail('agent_unreachable', 'the agent died', text('{}'));
      });
      for (const count of [0, 1, 20]) {
        const got: string[] = [];
        const read = async (): Promise<void> => {
          const parts = pair.caller.stream('s.fail', text(String(count)), { timeoutMs: 5_000 });
          for await (const part of parts) got.push(words(part));
        };
        const error = await errorOf(read());
        expect(error).toBeInstanceOf(RemoteError);
        expect(error).toMatchObject({ code: 'agent_unreachable', message: 'the agent died' });
        expect(words({ body: (error as RemoteError).body })).toBe('{}');
        expect(got).toHaveLength(count);
      }
      await eventually(() => isIdle(pair));
    });

    it('throws what the handler throws in the middle', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 's.throws', async (delivery) => {
        await exchangeOf(delivery).write(text('one'));
        throw new PatchbayError('agent_bad_reply', 'not JSON');
      });
      const error = await errorOf(readAll(pair.caller.stream('s.throws', NOTHING, { timeoutMs: 5_000 })));
      expect(error).toMatchObject({ code: 'agent_bad_reply', message: 'not JSON' });
    });

    it('lives through silence longer than its time, which is the responder’s to keep', async () => {
      await using pair = await adapter.createPair();
      let leftMs = 0;
      await serve(pair, 's.silence', async (delivery) => {
        leftMs = exchangeOf(delivery).deadlineMs - performance.now();
        await exchangeOf(delivery).write(text('one'));
        await pass(4_000);
        await exchangeOf(delivery).write(text('two'));
        exchangeOf(delivery).end();
      });
      const parts = await readAll(pair.caller.stream('s.silence', NOTHING, { timeoutMs: 500 }));
      expect(parts.map(words)).toEqual(['one', 'two']);
      expect(leftMs).toBeGreaterThan(300);
      expect(leftMs).toBeLessThanOrEqual(501);
    });

    it.each([undefined, 50_000, 1])('lets no more than the window be under way (%s)', async (windowBytes) => {
      await using pair = await adapter.createPair();
      const window = windowBytes ?? 262_144;
      let written = 0;
      await serve(pair, 's.window', async (delivery) => {
        const exchange = exchangeOf(delivery);
        for (let part = 0; part < 200; part++) {
          await exchange.write(pattern(10_000));
          written++;
        }
        exchange.end();
      });
      const options = { timeoutMs: 20_000, ...(windowBytes === undefined ? {} : { windowBytes }) };
      const parts = pair.caller.stream('s.window', NOTHING, options)[Symbol.asyncIterator]();
      let read = 0;
      while (!(await parts.next()).done) {
        read++;
        if (read % 20 === 0) {
          await pass(60);
          expect((written - read) * 10_000).toBeLessThanOrEqual(window + 20_000);
        }
      }
      expect(read).toBe(200);
    });

    it('lets a reader that does not read slow its responder and nobody else', async () => {
      await using pair = await adapter.createPair();
      let written = 0;
      await serve(pair, 's.stuck', async (delivery) => {
        for (;;) {
          await exchangeOf(delivery).write(pattern(50_000));
          written++;
        }
      });
      await serve(pair, 's.echo', echo);
      await serve(pair, 's.other', async (delivery) => {
        for (let part = 0; part < 100; part++) await exchangeOf(delivery).write(pattern(50_000));
        exchangeOf(delivery).end();
      });
      const stuck = Array.from({ length: 100 }, () =>
        pair.caller.stream('s.stuck', NOTHING, { timeoutMs: 60_000 })[Symbol.asyncIterator](),
      );
      await Promise.all(stuck.map((parts) => parts.next()));
      await pass(100);
      const begin = performance.now();
      for (let index = 0; index < 100; index++) await pair.caller.request('s.echo', NOTHING, { timeoutMs: 5_000 });
      const other = await readAll(pair.caller.stream('s.other', NOTHING, { timeoutMs: 5_000 }));
      expect(other).toHaveLength(100);
      expect(performance.now() - begin).toBeLessThan(2_000);
      expect(written).toBeLessThan(100 * 9);
      await Promise.all(stuck.map(async (parts) => parts.return?.()));
      await eventually(() => isIdle(pair));
    });

    it('keeps a thousand streams apart', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 's.many', async (delivery) => {
        for (let part = 0; part < 20; part++) {
          await exchangeOf(delivery).write(text(`${words(delivery)}-${part}`));
          if (part % 5 === 0) await pass(1);
        }
        exchangeOf(delivery).end();
      });
      const streams = Array.from({ length: 1_000 }, async (_, index) => {
        const parts = await readAll(pair.caller.stream('s.many', text(String(index)), { timeoutMs: 30_000 }));
        return parts.map(words);
      });
      (await Promise.all(streams)).forEach((parts, index) => {
        expect(parts).toEqual(Array.from({ length: 20 }, (_, part) => `${index}-${part}`));
      });
      await eventually(() => isIdle(pair));
    });

    it('takes a large request', async () => {
      await using pair = await adapter.createPair();
      const body = pattern(5_000_000);
      await serve(pair, 's.large', async (delivery) => {
        await exchangeOf(delivery).write(text(String(Buffer.compare(delivery.body, body))));
        exchangeOf(delivery).end();
      });
      expect((await readAll(pair.caller.stream('s.large', body, { timeoutMs: 10_000 }))).map(words)).toEqual(['0']);
    });
  });
}
