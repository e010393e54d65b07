import type { ErrorCode, PatchbayError } from '@patchbay/core';
import type { Exchange, Headers } from '../bus.js';
import { RemoteError } from '../bus-error.js';
import { endedError, rejected } from '../ended-exchange.js';
import { assertHeaders, NO_HEADERS } from '../headers.js';
import type { InHand } from '../in-hand.js';
import type { MemoryCall } from './memory-call.js';
import type { MemorySubscription } from './memory-subscription.js';

const NO_BODY = new Uint8Array(0);

/** The responder's end of a call inside one process. */
export class MemoryExchange implements Exchange {
  readonly deadlineMs: number;
  readonly #call: MemoryCall;
  readonly #subscription: MemorySubscription;
  readonly #open: InHand;
  #ended = false;
  #controller: AbortController | undefined;
  #abortReason: PatchbayError | undefined;

  /** @param open Counts the exchanges of the whole bus. */
  constructor(call: MemoryCall, subscription: MemorySubscription, open: InHand, deadlineMs: number) {
    this.#call = call;
    this.#subscription = subscription;
    this.#open = open;
    this.deadlineMs = deadlineMs;
    open.take();
    subscription.inHand.take();
  }

  get wants(): 'unary' | 'stream' {
    return this.#call.wants;
  }

  // Made on first use: most exchanges end before anybody asks for it.
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  confirm(): Promise<boolean> {
    return Promise.resolve(!this.#ended);
  }

  reply(body: Uint8Array, headers: Headers = NO_HEADERS): void {
    if (this.#ended) return;
    assertHeaders(headers);
    this.#call.reply(this, body, headers);
  }

  write(body: Uint8Array, headers: Headers = NO_HEADERS): Promise<void> {
    if (this.#ended) return rejected(this.#abortReason ?? endedError());
    try {
      assertHeaders(headers);
    } catch (error) {
      return rejected(error);
    }
    return this.#call.write(this, body, headers);
  }

  end(headers: Headers = NO_HEADERS): void {
    if (this.#ended) return;
    assertHeaders(headers);
    this.#call.end(this, headers);
  }

  fail(code: ErrorCode, message: string, body: Uint8Array = NO_BODY, headers: Headers = NO_HEADERS): void {
    if (this.#ended) return;
    assertHeaders(headers);
    this.#call.fail(this, new RemoteError(code, message, body, headers));
  }

  /** Ends the exchange: it was answered, or its time is over. */
  release(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#open.release();
    this.#subscription.inHand.release();
  }

  /** Ends the exchange because nobody waits for it any more. */
  abort(reason: PatchbayError): void {
    if (this.#ended) return;
    this.#abortReason = reason;
    this.release();
    this.#controller?.abort(reason);
  }
}
