import type { ErrorCode } from '@patchbay/core';

/** Headers of a message: exact names (see `BusHeader`) to values without line breaks. */
export type Headers = Readonly<Record<string, string>>;

/** What travels: a subject, bytes that nobody changes after they were handed over, and headers. */
export interface Message {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: Headers;
}

/**
 * The way messages go between services and nodes. Two adapters pass one contract suite: `MemoryBus` and `NatsBus`.
 *
 * Subjects are dot-separated tokens; a subscription may use `*` (one token) and `>` (the rest).
 */
export interface Bus {
  /** Sends to every subscriber, or to one of each queue group; fire and forget, in order per publisher. */
  publish(subject: string, body: Uint8Array, headers?: Headers): void;

  /** Receives messages and requests on `subject`; members of one `queue` share them. Effective when `flush()` resolves. */
  subscribe(subject: string, handler: Handler, options?: SubscribeOptions): Subscription;

  /**
   * Asks for one reply.
   *
   * @throws NoRespondersError at once when nobody serves the subject; DeadlineExceededError after `timeoutMs`;
   * DisconnectedError when the link drops; RemoteError when the responder failed the exchange; PatchbayError
   * `cancelled` when `signal` aborts (the responder is told), `node_lost` when the responder's process is gone.
   */
  request(subject: string, body: Uint8Array, options: RequestOptions): Promise<Message>;

  /**
   * Asks for a stream of replies. Iteration ends normally only after the responder said `end`; everything else throws
   * as `request` does (and `stream_broken` for a gap). Leaving the loop, or `signal`, cancels at the responder.
   * At most `windowBytes` are under way, so a slow reader slows the responder and nobody else.
   * `timeoutMs` is told to the responder, which owns the clocks of a stream; the adapter itself only notices within
   * seconds that a responder is gone.
   */
  stream(subject: string, body: Uint8Array, options: StreamOptions): AsyncIterable<Message>;

  /** Resolves when everything published and subscribed so far has reached the server. */
  flush(): Promise<void>;

  /** Whether messages to other processes can be sent now. */
  readonly isUp: boolean;

  /** Calls `listener` whenever `isUp` changes; returns the way to stop that. */
  onStatus(listener: (isUp: boolean) => void): () => void;

  /** Ends everything at once: exchanges in hand fail with `cancelled`. Drain subscriptions first. Idempotent. */
  close(): Promise<void>;
}

/** How a subscriber takes part. */
export interface SubscribeOptions {
  /** Name of the queue group. Absent: every such subscriber gets every message. */
  readonly queue?: string;
}

/** Common options of `request` and `stream`. */
export interface RequestOptions {
  /** Time left for the whole call, milliseconds > 0. Travels as what is left. */
  readonly timeoutMs: number;
  readonly headers?: Headers;
  /** Aborts the call; the responder sees its own signal abort. */
  readonly signal?: AbortSignal;
}

/** Options of `stream`. */
export interface StreamOptions extends RequestOptions {
  /** Bytes that may be under way unread. Default 262,144. */
  readonly windowBytes?: number;
}

/**
 * Called for each message. A returned promise counts as "in hand" for `drain()`; an exchange does until it ended.
 * When the handler throws or rejects before the exchange ended, the exchange fails with the error's code.
 */
export type Handler = (delivery: Delivery) => void | Promise<void>;

/** A message as a subscriber gets it. */
export interface Delivery extends Message {
  /** How to answer; absent for a message that nobody waits on. */
  readonly exchange: Exchange | undefined;
}

/**
 * The responder's end of one request or stream. Ended exactly once, by `reply`, `end` or `fail`; later calls do
 * nothing.
 */
export interface Exchange {
  /**
   * What the caller waits for: `unary` one reply, `stream` any number; `any` for a plain client of the message
   * system that cannot say, so the responder decides.
   */
  readonly wants: 'unary' | 'stream' | 'any';
  /** When the caller's time is over, on this process's monotonic clock in milliseconds. */
  readonly deadlineMs: number;
  /** Aborts when the caller cancelled or vanished, or when the link to it is lost. Not at the deadline. */
  readonly signal: AbortSignal;
  /**
   * Asks the caller whether it still waits. What is called may have been under way for long: a process or a server that
   * stood still delivers afterwards what its callers have given up, and repeated elsewhere, meanwhile.
   *
   * @returns false when the caller has left, and when it says nothing within 1.5 s; a plain client cannot be asked, and
   * true is assumed
   */
  confirm(): Promise<boolean>;
  /** The whole answer; ends the exchange. Large bodies are the adapter's business. */
  reply(body: Uint8Array, headers?: Headers): void;
  /** One part of a stream. Resolves when there is room for the next; rejects when the caller is gone. */
  write(body: Uint8Array, headers?: Headers): Promise<void>;
  /** Ends a stream well. */
  end(headers?: Headers): void;
  /**
   * Ends the exchange with an error; `body` is the error in the caller's own protocol, when the responder words it.
   * `headers` are what the caller's {@link RemoteError} carries. Default: none.
   */
  fail(code: ErrorCode, message: string, body?: Uint8Array, headers?: Headers): void;
}

/** A subscription; its owner drains it. */
export interface Subscription {
  readonly subject: string;
  /**
   * Takes no new messages, and resolves when what is in hand is finished or after `withinMs` (default: no limit; each
   * exchange has its own deadline). Never loses a message that was already delivered. Idempotent.
   */
  drain(withinMs?: number): Promise<void>;
}
