import type { Delivery, Exchange, Subscription } from '@patchbay/bus';
import { NoRespondersError } from '@patchbay/bus';
import { eventually } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import type { BusAdapter } from './bus-adapter.js';
import { echo, errorOf, exchangeOf, isIdle, NOTHING, pass, readAll, serve, text } from './contract-kit.js';

async function slowEcho(delivery: Delivery): Promise<void> {
  await pass(1);
  echo(delivery);
}

/** Leaving without losing anything. */
export function drainContract(adapter: BusAdapter): void {
  describe(`${adapter.name}: drain`, () => {
    it('loses nothing in 40 rounds of a member that leaves under load', async () => {
      await using pair = await adapter.createPair();
      await serve(pair, 'd.load', slowEcho);
      const stop = new AbortController();
      let answered = 0;
      const load = Array.from({ length: 20 }, async () => {
        while (!stop.signal.aborted) {
          await pair.caller.request('d.load', text('x'), { timeoutMs: 5_000 });
          answered++;
        }
      });
      for (let round = 0; round < 40; round++) {
        const member = await serve(pair, 'd.load', slowEcho);
        const before = answered;
        await eventually(() => answered > before + 20);
        await member.drain();
      }
      stop.abort();
      await Promise.all(load);
      await eventually(() => isIdle(pair));
    });

    it('waits for what is in hand, and no longer than it may', async () => {
      await using pair = await adapter.createPair();
      const exchanges: Exchange[] = [];
      const subscription = await serve(pair, 'd.wait', (delivery) => void exchanges.push(exchangeOf(delivery)));
      const request = pair.caller.request('d.wait', NOTHING, { timeoutMs: 10_000 });
      const stream = readAll(pair.caller.stream('d.wait', NOTHING, { timeoutMs: 10_000 }));
      await eventually(() => exchanges.length === 2);
      const begin = performance.now();
      await subscription.drain(100);
      expect(performance.now() - begin).toBeGreaterThan(90);
      expect(performance.now() - begin).toBeLessThan(1_000);
      let drained = false;
      const draining = subscription.drain().then(() => {
        drained = true;
      });
      exchanges[0]?.reply(text('one'));
      await pass(20);
      expect(drained).toBe(false);
      await exchanges[1]?.write(text('two'));
      exchanges[1]?.reply(text('three'));
      await draining;
      expect((await request).body.length).toBe(3);
      expect(await stream).toHaveLength(2);
      await subscription.drain();
    });

    it('waits for handlers that still run', async () => {
      await using pair = await adapter.createPair();
      let finished = 0;
      const subscription = await serve(pair, 'd.handler', async () => {
        await pass(200);
        finished++;
      });
      pair.caller.publish('d.handler', NOTHING);
      await pair.caller.flush();
      await pair.settle();
      await subscription.drain();
      expect(finished).toBe(1);
    });

    it('takes no new messages', async () => {
      await using pair = await adapter.createPair();
      let calls = 0;
      const subscription = await serve(pair, 'd.gone', (delivery) => {
        calls++;
        echo(delivery);
      });
      await pair.caller.request('d.gone', NOTHING, { timeoutMs: 5_000 });
      await subscription.drain();
      await eventually(async () => {
        const error = await errorOf(pair.caller.request('d.gone', NOTHING, { timeoutMs: 5_000 }));
        return error instanceof NoRespondersError;
      });
      expect(calls).toBe(1);
      expect(subscription.subject).toBe('d.gone');
    });

    it('subscribes to and drains ten thousand subjects quickly', async () => {
      await using pair = await adapter.createPair();
      const begin = performance.now();
      const subscriptions: Subscription[] = [];
      for (let index = 0; index < 10_000; index++) {
        subscriptions.push(pair.responder.subscribe(`d.many-${index}`, echo, { queue: 'q' }));
      }
      await pair.settle();
      await pair.caller.request('d.many-9999', NOTHING, { timeoutMs: 5_000 });
      await Promise.all(subscriptions.map((subscription) => subscription.drain()));
      expect(performance.now() - begin).toBeLessThan(5_000);
    });
  });
}
