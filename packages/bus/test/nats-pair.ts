import { NatsBus } from '@patchbay/bus';
import type { NatsBusOptions } from '@patchbay/bus';
import { eventually } from '@patchbay/testkit';
import type { BusPair, CountedBus } from './bus-adapter.js';
import { echo, NOTHING } from './contract-kit.js';

/** Two connections to NATS; one to each of two servers when there are several. */
export async function createNatsPair(urls: readonly string[], options: Partial<NatsBusOptions> = {}): Promise<BusPair> {
  const handlerErrors: unknown[] = [];
  const connect = (url: string | undefined): Promise<NatsBus> =>
    NatsBus.connect({ servers: url ?? [], onHandlerError: (error) => void handlerErrors.push(error), ...options });
  const caller = await connect(urls[0]);
  const responder = await connect(urls[1] ?? urls[0]);
  let probes = 0;
  return {
    caller,
    responder,
    handlerErrors,
    settle: async () => {
      if (!caller.isUp || !responder.isUp) return;
      await responder.flush();
      await caller.flush();
      if (urls.length > 1) await isKnown(caller, responder, `settle.${++probes}`);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([caller.close(), responder.close()]);
    },
  };
}

/** Between servers a subscription is known a little later; interest travels in order, so the last one tells. */
async function isKnown(caller: CountedBus, responder: CountedBus, subject: string): Promise<void> {
  const subscription = responder.subscribe(subject, echo, { queue: 'settle' });
  await eventually(() => caller.request(subject, NOTHING, { timeoutMs: 1_000 }));
  await subscription.drain();
}
