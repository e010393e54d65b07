import { PatchbayError } from '@patchbay/core';
import type { Headers, Message } from '../bus.js';
import type { RemoteError } from '../bus-error.js';
import { rejected } from '../ended-exchange.js';
import { PartQueue } from '../part-queue.js';
import type { PartQueueOwner } from '../part-queue.js';
import { listenToAbort, stopListening } from '../common-signal.js';
import { answer, Responders } from './memory-call.js';
import type { MemoryCall } from './memory-call.js';
import type { MemoryExchange } from './memory-exchange.js';

const ROOM = Promise.resolve();

interface Writer {
  resolve(): void;
  reject(error: PatchbayError): void;
}

/** What a stream needs of its bus. */
export interface MemoryStreamHost {
  /** Delivers the request. @throws PatchbayError when it cannot be */
  open(stream: MemoryStream): void;
  /** The stream is over on both sides. */
  closed(stream: MemoryStream): void;
}

/** One stream of replies inside a process: writers wait while more than the window is unread. */
export class MemoryStream implements MemoryCall, PartQueueOwner {
  readonly wants = 'stream';
  readonly parts: AsyncIterator<Message, undefined>;
  readonly responders = new Responders();
  readonly #queue = new PartQueue(this);
  readonly #host: MemoryStreamHost;
  readonly #subject: string;
  readonly #windowBytes: number;
  readonly #signal: AbortSignal | undefined;
  #writers: Writer[] = [];
  #closed = false;

  constructor(
    call: { readonly subject: string; readonly windowBytes: number; readonly signal: AbortSignal | undefined },
    host: MemoryStreamHost,
  ) {
    this.#subject = call.subject;
    this.#windowBytes = call.windowBytes;
    this.#signal = call.signal;
    this.#host = host;
    this.parts = this.#queue;
  }

  onStart(): void {
    if (this.#signal?.aborted === true) {
      this.handleEvent();
      return;
    }
    if (this.#signal !== undefined) listenToAbort(this.#signal, this);
    try {
      this.#host.open(this);
    } catch (error) {
      this.#close();
      this.#queue.finish(error as PatchbayError);
    }
  }

  onTaken(): void {
    if (this.#writers.length === 0 || this.#queue.queuedBytes >= this.#windowBytes) return;
    for (const writer of this.#writers.splice(0)) writer.resolve();
  }

  onLeft(): void {
    this.#abort(new PatchbayError('cancelled', `the reader of ${this.#subject} left`));
  }

  reply(exchange: MemoryExchange, body: Uint8Array, headers: Headers): void {
    if (!this.responders.claim(exchange)) return;
    this.#queue.push(answer(this.#subject, body, headers));
    this.#finish();
  }

  write(exchange: MemoryExchange, body: Uint8Array, headers: Headers): Promise<void> {
    if (!this.responders.claim(exchange)) return rejected(this.#gone());
    this.#queue.push(answer(this.#subject, body, headers));
    if (this.#queue.queuedBytes < this.#windowBytes) return ROOM;
    const written = new Promise<void>((resolve, reject) => {
      this.#writers.push({ resolve, reject });
    });
    // Whoever does not wait for it need not hear that the reader is gone.
    written.catch(() => undefined);
    return written;
  }

  end(exchange: MemoryExchange): void {
    if (this.responders.claim(exchange)) this.#finish();
  }

  fail(exchange: MemoryExchange, error: RemoteError): void {
    if (this.responders.claim(exchange)) this.#finish(error);
  }

  /** The caller's signal aborted. */
  handleEvent(): void {
    this.cancel(new PatchbayError('cancelled', `the call to ${this.#subject} was cancelled`));
  }

  /** Ends the stream from the caller's side; what is unread is dropped. */
  cancel(error: PatchbayError): void {
    this.#queue.abort(error);
    this.#abort(error);
  }

  #abort(error: PatchbayError): void {
    this.#close();
    this.responders.abort(error);
    for (const writer of this.#writers.splice(0)) writer.reject(error);
  }

  #finish(error?: RemoteError): void {
    this.#close();
    this.responders.release();
    for (const writer of this.#writers.splice(0)) writer.resolve();
    this.#queue.finish(error);
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#signal !== undefined) stopListening(this.#signal, this);
    this.#host.closed(this);
  }

  #gone(): PatchbayError {
    return new PatchbayError('cancelled', `nobody reads ${this.#subject} any more`);
  }
}
