import type { Msg, NatsConnection, Subscription as NatsClientSubscription } from 'nats';
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
import { DisconnectedError } from '../bus-error.js';
import type { BusStats } from '../bus-stats.js';
import { DeadlineWheel } from '../deadline-wheel.js';
import { InHand } from '../in-hand.js';
import { MemoryBus } from '../memory/memory-bus.js';
import type { HandlerErrorListener } from '../run-handler.js';
import { assertSubject, assertSubjectPattern } from '../subject.js';
import { connectNats } from './connect-nats.js';
import type { NatsConnectOptions } from './connect-nats.js';
import { ConnectionWatcher } from './connection-watcher.js';
import { DEFAULT_WINDOW_BYTES } from './frame-limits.js';
import { encodeHead } from './frame-head.js';
import { LeaveBatch } from './leave-batch.js';
import { LocalSubjects } from './local-subjects.js';
import { NatsCall } from './nats-call.js';
import type { CallHost } from './nats-call.js';
import { NatsExchange } from './nats-exchange.js';
import { NatsRequest } from './nats-request.js';
import { NatsStream } from './nats-stream.js';
import { NatsSubscription } from './nats-subscription.js';
import { Peers } from './peers.js';
import { PlainExchange } from './plain-exchange.js';
import { ReplyMultiplexer } from './reply-multiplexer.js';
import { Stillness } from './stillness.js';
import { readMessage } from './wire-message.js';
import { NatsWire } from './wire.js';

/** Settings of a {@link NatsBus}. */
export interface NatsBusOptions extends NatsConnectOptions {
  /** Serve calls in this process when somebody here subscribed to their subject. Default true. */
  readonly localFirst?: boolean;
  /** Subjects that `localFirst` covers: names, or patterns with `*` and `>`. Default `['a2a.*']`. */
  readonly localSubjects?: readonly string[];
  /**
   * Where no answer goes, whatever a message says: a caller who may only call agents could have ours published under
   * the services' own subjects, with our rights. Beginnings of subjects. Default `['a2a.', 'patchbay.', '$']`.
   */
  readonly noReplyTo?: readonly string[];
  /** Told of every error that a subscriber let out. Default: nobody. */
  readonly onHandlerError?: HandlerErrorListener;
  /** Told when the server complains, for instance of missing permissions. Default: nobody. */
  readonly onComplaint?: (code: string) => void;
  /** Largest request or reply that is put together, bytes. Default 67,108,864. */
  readonly maxBodyBytes?: number;
  /** Time that a plain client's call has when it does not say so, milliseconds. Default 30,000. */
  readonly plainTimeoutMs?: number;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

const DEFAULT_MAX_BODY_BYTES = 64 * 1024 * 1024;
const DEFAULT_PLAIN_TIMEOUT_MS = 30_000;
const DEFAULT_NO_REPLY_TO = ['a2a.', 'patchbay.', '$'];
const CLOSE_LIMIT_MS = 500;

/**
 * The bus over NATS: one server or a cluster.
 *
 * While the link is down, calls fail at once and published messages are dropped (and counted): events are recovered
 * by catching up, and a buffer would grow without bound and bring the past back later.
 */
export class NatsBus implements Bus {
  readonly #nats: NatsConnection;
  readonly #wire: NatsWire;
  readonly #clock: Clock;
  readonly #wheel: DeadlineWheel;
  readonly #inbox: ReplyMultiplexer;
  readonly #peers: Peers;
  readonly #host: CallHost;
  readonly #watcher: ConnectionWatcher;
  readonly #local: MemoryBus | undefined;
  readonly #localSubjects: LocalSubjects;
  readonly #noReplyTo: readonly string[];
  readonly #onComplaint: (code: string) => void;
  readonly #leaveBatch: LeaveBatch;
  readonly #stillness: Stillness;
  readonly #onHandlerError: HandlerErrorListener;
  readonly #plainTimeoutMs: number;
  readonly #statusListeners = new Set<(isUp: boolean) => void>();
  readonly #subscriptions = new Set<NatsSubscription>();
  readonly #requests = new InHand();
  readonly #streams = new InHand();
  readonly #exchanges = new InHand();
  #droppedMessages = 0;
  #closing: Promise<void> | undefined;

  readonly #subscriptionHost = {
    exchanges: this.#exchanges,
    onHandlerError: (error: unknown, subject: string): void => {
      this.#onHandlerError(error, subject);
    },
    leave: (subscription: NatsClientSubscription): Promise<void> => this.#leaveBatch.leave(subscription),
    left: (subscription: NatsSubscription): void => {
      this.#subscriptions.delete(subscription);
    },
  };

  private constructor(nats: NatsConnection, options: NatsBusOptions) {
    this.#nats = nats;
    this.#wire = new NatsWire(nats);
    this.#leaveBatch = new LeaveBatch(nats);
    this.#clock = options.clock ?? systemClock;
    this.#stillness = new Stillness(this.#clock);
    this.#wheel = new DeadlineWheel(this.#clock);
    this.#noReplyTo = options.noReplyTo ?? DEFAULT_NO_REPLY_TO;
    this.#onComplaint = options.onComplaint ?? (() => undefined);
    this.#onHandlerError = options.onHandlerError ?? (() => undefined);
    this.#plainTimeoutMs = options.plainTimeoutMs ?? DEFAULT_PLAIN_TIMEOUT_MS;
    this.#localSubjects = new LocalSubjects(options.localSubjects ?? ['a2a.*']);
    const isLocalFirst = options.localFirst ?? true;
    this.#local = isLocalFirst
      ? new MemoryBus({ onHandlerError: this.#onHandlerError, clock: this.#clock })
      : undefined;
    this.#inbox = new ReplyMultiplexer(nats, this.#wire, options.inboxPrefix ?? '_INBOX', {
      onFrame: (sender, sent) => {
        this.#peers.onFrame(sender, sent);
      },
      onConnectionMessage: (message) => {
        this.#peers.onConnectionMessage(message);
      },
    });
    const host = {
      wire: this.#wire,
      inbox: this.#inbox,
      wheel: this.#wheel,
      nowMs: () => this.#clock.monotonicMs(),
    };
    this.#peers = new Peers(host, (token) => this.#inbox.receiver(token));
    this.#host = { ...host, peers: this.#peers, maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES };
    this.#watcher = new ConnectionWatcher(nats, {
      onLevel: (isUp) => {
        this.#onLevel(isUp);
      },
      onComplaint: options.onComplaint ?? (() => undefined),
    });
  }

  /**
   * Connects to NATS; waits for a server that is not there yet.
   *
   * @throws PatchbayError bus_unavailable when the server refuses the credentials or `options.signal` aborts
   */
  static async connect(options: NatsBusOptions): Promise<NatsBus> {
    return new NatsBus(await connectNats(options), options);
  }

  publish(subject: string, body: Uint8Array, headers?: Headers): void {
    assertSubject(subject);
    const head = encodeHead('', headers);
    if (!this.isUp) {
      this.#droppedMessages++;
      return;
    }
    if (this.#wire.send(subject, body, { head })) return;
    throw new PatchbayError('request_too_large', `a message to ${subject} has ${body.length} bytes; NATS takes fewer`);
  }

  subscribe(subject: string, handler: Handler, options: SubscribeOptions = {}): Subscription {
    assertSubjectPattern(subject);
    if (this.#closing !== undefined) throw closedError();
    const { queue } = options;
    const local =
      queue !== undefined && this.#localSubjects.covers(subject)
        ? this.#local?.subscribe(subject, handler, { queue })
        : undefined;
    const subscription = new NatsSubscription(subject, handler, this.#subscriptionHost, local);
    this.#subscriptions.add(subscription);
    const callback = (error: Error | null, msg: Msg): void => {
      if (error === null) this.#receive(subscription, msg);
    };
    // Whoever publishes and then subscribes does not get it.
    this.#wire.release();
    subscription.bind(this.#nats.subscribe(subject, queue === undefined ? { callback } : { callback, queue }));
    return subscription;
  }

  request(subject: string, body: Uint8Array, options: RequestOptions): Promise<Message> {
    const local = this.#localFor(subject);
    if (local !== undefined) return local.request(subject, body, options);
    return new Promise((resolve, reject) => {
      const { timeoutMs, signal, headers } = options;
      this.#checkCall(subject, signal);
      const target = { subject, body, headers, timeoutMs, signal };
      // It lives in the wheel and the inbox until it settles.
      void new NatsRequest(this.#host, target, this.#requests, { resolve, reject });
    });
  }

  stream(subject: string, body: Uint8Array, options: StreamOptions): AsyncIterable<Message> {
    const { timeoutMs, signal, headers, windowBytes = DEFAULT_WINDOW_BYTES } = options;
    const checkUp = (): void => {
      this.#checkCall(subject, signal);
    };
    return {
      [Symbol.asyncIterator]: () => {
        const local = this.#localFor(subject);
        if (local !== undefined) return local.stream(subject, body, options)[Symbol.asyncIterator]();
        const target = { subject, body, headers, timeoutMs, signal };
        return new NatsStream(this.#host, target, this.#streams, { windowBytes, checkUp }).parts;
      },
    };
  }

  async flush(): Promise<void> {
    if (!this.isUp) throw new DisconnectedError();
    try {
      await this.#wire.flush();
    } catch (cause) {
      throw new DisconnectedError(`the link to the message bus dropped: ${String(cause)}`);
    }
  }

  get isUp(): boolean {
    return this.#closing === undefined && this.#watcher.isUp;
  }

  onStatus(listener: (isUp: boolean) => void): () => void {
    this.#statusListeners.add(listener);
    return () => {
      this.#statusListeners.delete(listener);
    };
  }

  /** What is held right now, and how many published messages were dropped because the link was down. */
  stats(): BusStats & { readonly droppedMessages: number } {
    const local = this.#local?.stats();
    return {
      subscriptions: this.#subscriptions.size,
      requests: this.#requests.count + (local?.requests ?? 0),
      streams: this.#streams.count + (local?.streams ?? 0),
      exchanges: this.#exchanges.count + (local?.exchanges ?? 0),
      timers: this.#wheel.size + (local?.timers ?? 0),
      droppedMessages: this.#droppedMessages,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** The bus inside this process, when it serves calls to `subject`. */
  #localFor(subject: string): MemoryBus | undefined {
    const local = this.#local;
    return local !== undefined && this.#localSubjects.covers(subject) && local.serves(subject) ? local : undefined;
  }

  #checkCall(subject: string, signal: AbortSignal | undefined): void {
    assertSubject(subject);
    if (this.#closing !== undefined) throw closedError();
    if (signal?.aborted === true) throw new PatchbayError('cancelled', `the call to ${subject} was cancelled`);
    if (!this.#watcher.isUp) throw new DisconnectedError();
  }

  /** A message for a subscriber. Never throws: the client would stop reading. */
  #receive(subscription: NatsSubscription, msg: Msg): void {
    const message = readMessage(msg);
    const { subject, body, headers, reply } = message;
    if (reply === undefined) subscription.run({ subject, body, headers, exchange: undefined });
    else if (this.#noReplyTo.some((start) => reply.startsWith(start))) this.#onComplaint('REPLY_SUBJECT_REFUSED');
    else if (message.speaksFrames) {
      void new NatsExchange(this.#host, subscription, message, reply, this.#stillness.isRecent());
    } else {
      const options = { inbox: reply, timeoutMs: this.#plainTimeoutMs };
      void new PlainExchange(this.#host, subscription, message, options);
    }
  }

  #onLevel(isUp: boolean): void {
    if (this.#closing !== undefined) return;
    if (!isUp) this.#dropExchanges();
    for (const listener of this.#statusListeners) listener(isUp);
  }

  /** The link is lost: what is in flight over it fails now, and nothing of it comes back later. */
  #dropExchanges(): void {
    this.#wire.drop();
    this.#peers.clear();
    if (!this.#nats.isClosed()) this.#inbox.renew();
    for (const entry of this.#wheel.entries()) {
      if (entry instanceof NatsCall || entry instanceof NatsExchange || entry instanceof PlainExchange) {
        entry.onLinkLost();
      }
    }
  }

  async #close(): Promise<void> {
    this.#stillness.close();
    const error = closedError();
    const held = new Set<unknown>([...this.#wheel.entries(), ...this.#inbox.receivers()]);
    for (const entry of held) {
      if (entry instanceof NatsCall) entry.cancel(error);
      else if (entry instanceof NatsExchange || entry instanceof PlainExchange) entry.close(error);
    }
    this.#peers.clear();
    await this.#local?.close();
    for (const listener of this.#statusListeners) listener(false);
    this.#statusListeners.clear();
    // What was just said should still go out, but nobody waits for a server that does not answer.
    const limit = new Promise<void>((resolve) => {
      setTimeout(resolve, CLOSE_LIMIT_MS).unref();
    });
    if (this.#watcher.isUp) await Promise.race([this.#wire.flush().catch(() => undefined), limit]);
    await Promise.race([this.#nats.close(), limit]);
  }
}

function closedError(): PatchbayError {
  return new PatchbayError('cancelled', 'the bus is closed');
}
