import type { PatchbayError } from '@patchbay/core';
import type { Message } from './bus.js';

/** What the sender of the parts is told by their reader. */
export interface PartQueueOwner {
  /** The reader asks for the first part. */
  onStart(): void;
  /** The reader took a part that counted for so much. */
  onTaken(cost: number): void;
  /** The reader left the loop before the end. */
  onLeft(): void;
}

const OVERHEAD_BYTES = 128;
const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** What a part counts for against a window: its bytes, and a little for itself, so that empty parts are bounded too. */
export function partCost(bodyLength: number): number {
  return bodyLength + OVERHEAD_BYTES;
}

interface Queued {
  readonly part: Message;
  readonly cost: number;
}

interface Reader {
  resolve(result: IteratorResult<Message>): void;
  reject(error: PatchbayError): void;
}

/** Parts between their sender and one reader: an async iterator that is fed from outside. Used by both adapters. */
export class PartQueue implements AsyncIterator<Message, undefined> {
  readonly #owner: PartQueueOwner;
  #parts: Queued[] = [];
  #head = 0;
  #readers: Reader[] = [];
  #started = false;
  #ended = false;
  #error: PatchbayError | undefined;
  #queuedBytes = 0;

  constructor(owner: PartQueueOwner) {
    this.#owner = owner;
  }

  /** What the parts that wait for the reader count for. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether the reader waits for the next part. */
  get isAwaited(): boolean {
    return this.#readers.length > 0;
  }

  /** Whether the stream has ended, for the reader may still have parts to take. */
  get isEnded(): boolean {
    return this.#ended;
  }

  /** Gives a part to the reader; `cost` is what it counts for while it waits. */
  push(part: Message, cost = partCost(part.body.length)): void {
    if (this.#ended) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader.resolve({ done: false, value: part });
      this.#owner.onTaken(cost);
      return;
    }
    this.#parts.push({ part, cost });
    this.#queuedBytes += cost;
  }

  /** Ends the stream after what is queued: well, or with `error`. The first end counts. */
  finish(error?: PatchbayError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    for (const reader of this.#readers.splice(0)) this.#settle(reader);
  }

  /** Ends the stream at once and drops what is queued. */
  abort(error: PatchbayError): void {
    this.#parts = [];
    this.#head = 0;
    this.#queuedBytes = 0;
    if (this.#ended) this.#error ??= error;
    this.finish(error);
  }

  next(): Promise<IteratorResult<Message, undefined>> {
    if (!this.#started) {
      this.#started = true;
      this.#owner.onStart();
    }
    const queued = this.#parts[this.#head];
    if (queued !== undefined) {
      this.#drop(queued.cost);
      this.#owner.onTaken(queued.cost);
      return Promise.resolve({ done: false, value: queued.part });
    }
    return new Promise((resolve, reject) => {
      const reader: Reader = { resolve, reject };
      if (this.#ended) this.#settle(reader);
      else this.#readers.push(reader);
    });
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    const wasOpen = this.#started && !this.#ended;
    this.#started = true;
    this.#ended = true;
    this.#error = undefined;
    this.#parts = [];
    this.#head = 0;
    this.#queuedBytes = 0;
    for (const reader of this.#readers.splice(0)) reader.resolve(DONE);
    if (wasOpen) this.#owner.onLeft();
    return Promise.resolve(DONE);
  }

  /** An error is thrown once; after it the iterator is at its end. */
  #settle(reader: Reader): void {
    const error = this.#error;
    this.#error = undefined;
    if (error === undefined) reader.resolve(DONE);
    else reader.reject(error);
  }

  #drop(cost: number): void {
    this.#queuedBytes -= cost;
    this.#head++;
    if (this.#head === this.#parts.length) {
      this.#parts = [];
      this.#head = 0;
    } else if (this.#head > 1024) {
      this.#parts = this.#parts.slice(this.#head);
      this.#head = 0;
    } else {
      // Let go of the bytes now, not when the whole batch has been read.
      this.#parts[this.#head - 1] = TAKEN;
    }
  }
}

const TAKEN: Queued = { part: { subject: '', body: new Uint8Array(0), headers: {} }, cost: 0 };
