import { PatchbayError } from '@patchbay/core';
import type { Message } from '../bus.js';
import { BusHeader } from '../bus-header.js';
import type { InHand } from '../in-hand.js';
import { PartQueue } from '../part-queue.js';
import type { PartQueueOwner } from '../part-queue.js';
import { controlLine } from './frame-head.js';
import { NatsCall } from './nats-call.js';
import type { CallHost, CallTarget } from './nats-call.js';

// A body is a view of what the socket read at once. One that waits for its reader and is much smaller is copied, so
// that it does not hold all of that.
const COPY_BELOW_BYTES = 16_384;

/** A stream of replies: credit goes back as its reader takes the parts. */
export class NatsStream extends NatsCall implements PartQueueOwner {
  readonly parts: AsyncIterator<Message, undefined>;
  protected readonly deadlineAfterMs = undefined;
  protected readonly requestLines: string;
  readonly #queue = new PartQueue(this);
  readonly #windowBytes: number;
  readonly #checkUp: () => void;
  /** Taken by the reader and not yet given back to the sender. */
  #taken = 0;
  #hasParts = false;

  /** @param checkUp Throws when no call can be made now. */
  constructor(
    host: CallHost,
    target: CallTarget,
    inHand: InHand,
    options: { readonly windowBytes: number; readonly checkUp: () => void },
  ) {
    super(host, target, inHand);
    this.#windowBytes = options.windowBytes;
    this.#checkUp = options.checkUp;
    this.requestLines =
      controlLine(BusHeader.wants, 'stream') + controlLine(BusHeader.credit, Math.max(1, options.windowBytes));
    this.parts = this.#queue;
  }

  onStart(): void {
    try {
      this.#checkUp();
      this.start();
    } catch (error) {
      this.#queue.finish(error as PatchbayError);
    }
  }

  onTaken(cost: number): void {
    this.#pay(cost);
  }

  onLeft(): void {
    this.cancel(new PatchbayError('cancelled', `the reader of ${this.target.subject} left`));
  }

  protected onPart(part: Message, cost: number): void {
    this.#hasParts = true;
    const isLoose = this.#queue.isAwaited || part.body.length >= COPY_BELOW_BYTES;
    this.#queue.push(isLoose ? part : { ...part, body: part.body.slice() }, cost);
  }

  /** The frames of a message that is not whole are paid for once nothing before it waits for the reader. */
  protected onPending(): void {
    if (this.#queue.queuedBytes === 0) this.#pay(0);
  }

  protected onEnd(): void {
    this.#queue.finish();
  }

  /** A responder that knows no frames: its one reply is the stream. */
  protected onWhole(reply: Message): void {
    if (!this.#hasParts) this.#queue.push(reply);
    this.#queue.finish();
  }

  protected onFailed(error: PatchbayError): void {
    // What came before the error is still read, unless the caller itself has turned away.
    if (error.code === 'cancelled' && !this.#isRemote(error)) this.#queue.abort(error);
    else this.#queue.finish(error);
  }

  #isRemote(error: PatchbayError): boolean {
    return error.name === 'RemoteError';
  }

  #pay(cost: number): void {
    this.#taken += cost;
    if (this.#queue.queuedBytes === 0) this.#taken += this.takePendingCost();
    // Half a window at a time: the sender always has the other half.
    if (this.#taken < this.#windowBytes / 2) return;
    const bytesToGrant = this.#taken;
    this.#taken = 0;
    this.grant(bytesToGrant);
  }
}
