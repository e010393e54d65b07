import type { Subscription as NatsClientSubscription } from 'nats';
import type { Delivery, Handler, Subscription } from '../bus.js';
import { InHand } from '../in-hand.js';
import { runHandler } from '../run-handler.js';
import type { HandlerErrorListener } from '../run-handler.js';
import type { ExchangeOwner } from './nats-exchange.js';

/** What a subscription needs of its bus. */
export interface SubscriptionHost {
  readonly exchanges: InHand;
  readonly onHandlerError: HandlerErrorListener;
  /** Resolves when the server sends nothing more to `subscription`, and what it had sent has been handled. */
  leave(subscription: NatsClientSubscription): Promise<void>;
  /** The subscription takes no new messages. */
  left(subscription: NatsSubscription): void;
}

/** A subscription on the server, and in this process when calls are served here first. */
export class NatsSubscription implements Subscription, ExchangeOwner {
  readonly subject: string;
  readonly inHand = new InHand();
  readonly #handler: Handler;
  readonly #host: SubscriptionHost;
  readonly #local: Subscription | undefined;
  #remote: NatsClientSubscription | undefined;
  #leaving: Promise<void> | undefined;

  constructor(subject: string, handler: Handler, host: SubscriptionHost, local: Subscription | undefined) {
    this.subject = subject;
    this.#handler = handler;
    this.#host = host;
    this.#local = local;
  }

  get exchanges(): InHand {
    return this.#host.exchanges;
  }

  /** Binds the client's subscription, whose messages come to `run`. */
  bind(remote: NatsClientSubscription): void {
    this.#remote = remote;
  }

  run(delivery: Delivery): void {
    const running = runHandler(this.#handler, delivery, this.#host.onHandlerError);
    if (running === undefined) return;
    this.inHand.take();
    void running.then(() => {
      this.inHand.release();
    });
  }

  async drain(withinMs?: number): Promise<void> {
    const startMs = performance.now();
    const local = this.#local?.drain(withinMs);
    this.#leaving ??= this.#leave();
    await within(this.#leaving, withinMs);
    await local;
    const leftMs = withinMs === undefined ? undefined : Math.max(0, withinMs - (performance.now() - startMs));
    await this.inHand.idle(leftMs);
  }

  async #leave(): Promise<void> {
    this.#host.left(this);
    if (this.#remote !== undefined) await this.#host.leave(this.#remote);
  }
}

/** Waits for `promise`, which never rejects, but no longer than `limitMs`. */
async function within(promise: Promise<void>, limitMs: number | undefined): Promise<void> {
  if (limitMs === undefined) return promise;
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise, limit]);
  clearTimeout(timer);
}
