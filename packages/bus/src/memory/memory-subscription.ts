import type { Handler, Subscription } from '../bus.js';
import { InHand } from '../in-hand.js';
import type { IndexedSubscriber } from '../subject-index.js';

/** A subscription of the memory bus. */
export class MemorySubscription implements Subscription, IndexedSubscriber {
  readonly subject: string;
  readonly queue: string | undefined;
  readonly handler: Handler;
  /** Messages under way, exchanges that are open and handlers that run. */
  readonly inHand = new InHand();
  readonly #leave: (subscription: MemorySubscription) => void;
  #draining = false;

  constructor(
    subject: string,
    queue: string | undefined,
    handler: Handler,
    leave: (subscription: MemorySubscription) => void,
  ) {
    this.subject = subject;
    this.queue = queue;
    this.handler = handler;
    this.#leave = leave;
  }

  drain(withinMs?: number): Promise<void> {
    if (!this.#draining) {
      this.#draining = true;
      this.#leave(this);
    }
    return this.inHand.idle(withinMs);
  }
}
