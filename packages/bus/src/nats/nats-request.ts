import { PatchbayError } from '@patchbay/core';
import type { Headers, Message } from '../bus.js';
import type { InHand } from '../in-hand.js';
import { NatsCall } from './nats-call.js';
import type { CallHost, CallTarget } from './nats-call.js';

/** A request that waits for its one reply. */
export class NatsRequest extends NatsCall {
  protected readonly deadlineAfterMs: number;
  protected readonly requestLines = '';
  readonly #resolve: (reply: Message) => void;
  readonly #reject: (error: PatchbayError) => void;
  #part: Message | undefined;

  constructor(
    host: CallHost,
    target: CallTarget,
    inHand: InHand,
    settle: { readonly resolve: (reply: Message) => void; readonly reject: (error: PatchbayError) => void },
  ) {
    super(host, target, inHand);
    this.deadlineAfterMs = target.timeoutMs;
    this.#resolve = settle.resolve;
    this.#reject = settle.reject;
    this.start();
  }

  protected onPending(): void {
    this.grant(this.takePendingCost());
  }

  protected onPart(part: Message, cost: number): void {
    if (this.#part !== undefined) {
      this.cancel(new PatchbayError('internal', `${this.target.subject} answered one request with several parts`));
      return;
    }
    this.#part = part;
    this.grant(cost);
  }

  protected onEnd(headers: Headers): void {
    this.#resolve(this.#part ?? { subject: this.target.subject, body: new Uint8Array(0), headers });
  }

  protected onWhole(reply: Message): void {
    this.#resolve(reply);
  }

  protected onFailed(error: PatchbayError): void {
    this.#reject(error);
  }
}
