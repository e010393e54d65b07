import { PatchbayError, systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import type {
  Bus,
  Handler,
  Headers,
  Message,
  RequestOptions,
  StreamOptions,
  SubscribeOptions,
  Subscription,
} from '../bus.js';
import { NoRespondersError } from '../bus-error.js';
import type { BusStats } from '../bus-stats.js';
import { DeadlineWheel } from '../deadline-wheel.js';
import { assertHeaders, NO_HEADERS } from '../headers.js';
import { InHand } from '../in-hand.js';
import { runHandler } from '../run-handler.js';
import type { HandlerErrorListener } from '../run-handler.js';
import { SubjectIndex } from '../subject-index.js';
import type { SubjectMatch } from '../subject-index.js';
import { assertSubject, assertSubjectPattern } from '../subject.js';
import type { MemoryCall, Responders } from './memory-call.js';
import { MemoryExchange } from './memory-exchange.js';
import { MemoryRequest } from './memory-request.js';
import { MemoryStream } from './memory-stream.js';
import { MemorySubscription } from './memory-subscription.js';

/** Settings of a {@link MemoryBus}. */
export interface MemoryBusOptions {
  /** Told of every error that a subscriber let out. Default: nobody. */
  readonly onHandlerError?: HandlerErrorListener;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

const DEFAULT_WINDOW_BYTES = 262_144;
/** Messages handed out before others on the event loop get their turn. */
const BATCH = 256;

/**
 * The bus inside one process; the embedded default. Bodies and headers are handed over as they are, never copied.
 *
 * Hot path: a request is delivered in the caller's own turn of the event loop. Published messages are delivered in
 * order, after the publisher's current turn.
 */
export class MemoryBus implements Bus {
  readonly #onHandlerError: HandlerErrorListener;
  readonly #clock: Clock;
  readonly #wheel: DeadlineWheel;
  readonly #index = new SubjectIndex<MemorySubscription>();
  readonly #streams = new Set<MemoryStream>();
  readonly #statusListeners = new Set<(isUp: boolean) => void>();
  readonly #exchanges = new InHand();
  #outbox: (() => void)[] = [];
  #isSending = false;
  #closed = false;

  constructor(options: MemoryBusOptions = {}) {
    this.#onHandlerError = options.onHandlerError ?? (() => undefined);
    this.#clock = options.clock ?? systemClock;
    this.#wheel = new DeadlineWheel(this.#clock);
  }

  publish(subject: string, body: Uint8Array, headers: Headers = NO_HEADERS): void {
    assertSubject(subject);
    assertHeaders(headers);
    const match = this.#closed ? undefined : this.#index.match(subject);
    if (match === undefined) return;
    const message: Message = { subject, body, headers };
    for (const subscription of receivers(match)) {
      subscription.inHand.take();
      this.#send(() => {
        this.#run(subscription, message, undefined);
        subscription.inHand.release();
      });
    }
  }

  subscribe(subject: string, handler: Handler, options: SubscribeOptions = {}): Subscription {
    assertSubjectPattern(subject);
    if (this.#closed) throw closedError();
    const subscription = new MemorySubscription(subject, options.queue, handler, (leaving) => {
      this.#index.remove(leaving);
    });
    this.#index.add(subscription);
    return subscription;
  }

  /** Whether somebody in this process would get a request to `subject` now. */
  serves(subject: string): boolean {
    return this.#index.match(subject) !== undefined;
  }

  request(subject: string, body: Uint8Array, options: RequestOptions): Promise<Message> {
    return new Promise((resolve, reject) => {
      const { timeoutMs, signal, headers = NO_HEADERS } = options;
      const match = this.#open(subject, headers, signal);
      const request = new MemoryRequest({ subject, timeoutMs, signal }, this.#wheel, resolve, reject);
      const deadlineMs = this.#clock.monotonicMs() + timeoutMs;
      this.#wheel.add(request, deadlineMs);
      this.#deliver({ subject, body, headers }, match, request, deadlineMs);
    });
  }

  stream(subject: string, body: Uint8Array, options: StreamOptions): AsyncIterable<Message> {
    const { timeoutMs, signal, headers = NO_HEADERS, windowBytes = DEFAULT_WINDOW_BYTES } = options;
    const open = (stream: MemoryStream): void => {
      const match = this.#open(subject, headers, signal);
      this.#streams.add(stream);
      this.#deliver({ subject, body, headers }, match, stream, this.#clock.monotonicMs() + timeoutMs);
    };
    const closed = (stream: MemoryStream): void => {
      this.#streams.delete(stream);
    };
    return {
      [Symbol.asyncIterator]: () => new MemoryStream({ subject, windowBytes, signal }, { open, closed }).parts,
    };
  }

  flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#send(resolve);
    });
  }

  get isUp(): boolean {
    return !this.#closed;
  }

  onStatus(listener: (isUp: boolean) => void): () => void {
    this.#statusListeners.add(listener);
    return () => {
      this.#statusListeners.delete(listener);
    };
  }

  /** What is held right now. */
  stats(): BusStats {
    const streams = this.#streams.size;
    const requests = this.#wheel.size;
    return { subscriptions: this.#index.size, requests, streams, exchanges: this.#exchanges.count, timers: requests };
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    const error = closedError();
    for (const entry of this.#wheel.entries()) if (entry instanceof MemoryRequest) entry.cancel(error);
    for (const stream of this.#streams) stream.cancel(error);
    for (const listener of this.#statusListeners) listener(false);
    this.#statusListeners.clear();
    return Promise.resolve();
  }

  /** Checks that a call can be made, and finds who gets it. */
  #open(subject: string, headers: Headers, signal: AbortSignal | undefined): SubjectMatch<MemorySubscription> {
    if (this.#closed) throw closedError();
    if (signal?.aborted === true) throw new PatchbayError('cancelled', `the call to ${subject} was cancelled`);
    assertHeaders(headers);
    const match = this.#index.match(subject);
    // Whoever subscribed by name has had the subject checked, so only misses and wildcards pay for it.
    if (match === undefined) {
      assertSubject(subject);
      throw new NoRespondersError(subject);
    }
    return match;
  }

  #deliver(
    message: Message,
    match: SubjectMatch<MemorySubscription>,
    call: MemoryCall & { readonly responders: Responders },
    deadlineMs: number,
  ): void {
    const open = (subscription: MemorySubscription): MemoryExchange => {
      const exchange = new MemoryExchange(call, subscription, this.#exchanges, deadlineMs);
      call.responders.add(exchange);
      return exchange;
    };
    // Behind what was published before, when that has not been handed out yet.
    const hand = (subscription: MemorySubscription, exchange: MemoryExchange): void => {
      if (this.#isSending) this.#send(() => this.#run(subscription, message, exchange));
      else this.#run(subscription, message, exchange);
    };
    const only = onlyReceiver(match);
    if (only !== undefined) {
      hand(only, open(only));
      return;
    }
    // All are known to the call before the first of them can answer it.
    const deliveries = receivers(match).map((subscription) => [subscription, open(subscription)] as const);
    for (const [subscription, exchange] of deliveries) hand(subscription, exchange);
  }

  #run(subscription: MemorySubscription, message: Message, exchange: MemoryExchange | undefined): void {
    const { subject, body, headers } = message;
    const running = runHandler(subscription.handler, { subject, body, headers, exchange }, this.#onHandlerError);
    if (running === undefined) return;
    subscription.inHand.take();
    void running.then(() => {
      subscription.inHand.release();
    });
  }

  #send(act: () => void): void {
    this.#outbox.push(act);
    if (this.#isSending) return;
    this.#isSending = true;
    queueMicrotask(() => {
      this.#sendBatch();
    });
  }

  #sendBatch(): void {
    let sent = 0;
    for (; sent < BATCH; sent++) {
      const act = this.#outbox[sent];
      if (act === undefined) break;
      act();
    }
    this.#outbox.splice(0, sent);
    if (this.#outbox.length === 0) this.#isSending = false;
    else setImmediate(() => this.#sendBatch());
  }
}

/** The usual case without a list: one queue group and nobody who overhears it. */
function onlyReceiver(match: SubjectMatch<MemorySubscription>): MemorySubscription | undefined {
  return match.plain.length === 0 && match.groups.length === 1 ? match.groups[0]?.next() : undefined;
}

/** Every plain subscriber, and the one of each group whose turn it is. */
function receivers(match: SubjectMatch<MemorySubscription>): MemorySubscription[] {
  const list = [...match.plain];
  for (const group of match.groups) {
    const member = group.next();
    if (member !== undefined) list.push(member);
  }
  return list;
}

function closedError(): PatchbayError {
  return new PatchbayError('cancelled', 'the bus is closed');
}
