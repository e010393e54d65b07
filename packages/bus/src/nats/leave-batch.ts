import type { NatsConnection, Subscription } from 'nats';

/** What the client (nats 2.29) does for one draining subscription, in steps. */
interface WithProtocol {
  readonly protocol?: {
    unsub(subscription: Subscription): void;
    readonly subscriptions: { cancel(subscription: Subscription): void };
  };
}

/**
 * Leaves many subjects with one round trip. The client's own `drain()` makes one for each, which takes seconds for the
 * 100,000 of a node that shuts down.
 *
 * What the server sent before it read of our leaving is still delivered; `unsubscribe()` would lose it.
 */
export class LeaveBatch {
  readonly #nats: NatsConnection;
  #batch: Promise<void> | undefined;
  #leaving: Subscription[] = [];

  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** Resolves when nothing more comes for `subscription`; never rejects. */
  leave(subscription: Subscription): Promise<void> {
    this.#leaving.push(subscription);
    this.#batch ??= Promise.resolve().then(() => this.#leave());
    return this.#batch;
  }

  async #leave(): Promise<void> {
    const leaving = this.#leaving;
    this.#leaving = [];
    this.#batch = undefined;
    const { protocol } = this.#nats as unknown as WithProtocol;
    if (protocol === undefined) {
      await Promise.allSettled(leaving.map((subscription) => subscription.drain()));
      return;
    }
    for (const subscription of leaving) protocol.unsub(subscription);
    try {
      await this.#nats.flush();
    } catch {
      // The link is down or closed: the server sends nothing more as it is.
    }
    for (const subscription of leaving) protocol.subscriptions.cancel(subscription);
  }
}
