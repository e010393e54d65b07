import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Headers } from '../bus.js';
import { partCost } from '../part-queue.js';
import type { WireMessage } from './wire-message.js';

/** A message put together from its frames. */
export interface WholeMessage {
  readonly body: Uint8Array;
  readonly headers: Headers;
  /** What its frames cost the sender's credit. */
  readonly cost: number;
}

/** Puts numbered frames together again; a missing number is an error, never skipped. */
export class IncomingParts {
  readonly #maxBytes: number;
  readonly #tooLarge: ErrorCode;
  #nextSequence = 1;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #cost = 0;

  /** @param maxBytes Largest message, beyond which it is refused as `tooLarge`. */
  constructor(maxBytes: number, tooLarge: ErrorCode) {
    this.#maxBytes = maxBytes;
    this.#tooLarge = tooLarge;
  }

  /** Cost of the frames of a message that is not whole yet. */
  get pendingCost(): number {
    return this.#cost;
  }

  /** Says that the pending frames have been paid back to the sender. */
  payPending(): number {
    const cost = this.#cost;
    this.#cost = 0;
    return cost;
  }

  /** Checks the number of a frame. @throws PatchbayError stream_broken when one is missing */
  follow({ sequence }: WireMessage): void {
    if (sequence === this.#nextSequence++) return;
    throw new PatchbayError(
      'stream_broken',
      `a message of the stream was lost on the bus (expected number ${this.#nextSequence - 1}, got ${sequence})`,
    );
  }

  /**
   * Takes a frame of kind `part` or `data`; returns the message when it is whole.
   *
   * @throws PatchbayError stream_broken, or the code for what is too large
   */
  take(frame: WireMessage): WholeMessage | undefined {
    this.follow(frame);
    this.#cost += partCost(frame.body.length);
    this.#length += frame.body.length;
    if (this.#length > this.#maxBytes) {
      throw new PatchbayError(
        this.#tooLarge,
        `a message on the bus may have ${this.#maxBytes} bytes; this one has more`,
      );
    }
    if (frame.kind === 'part') {
      this.#chunks.push(frame.body);
      return undefined;
    }
    const body = this.#chunks.length === 0 ? frame.body : Buffer.concat([...this.#chunks, frame.body], this.#length);
    this.#chunks = [];
    this.#length = 0;
    return { body, headers: frame.headers, cost: this.payPending() };
  }
}
