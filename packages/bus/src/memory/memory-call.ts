import type { PatchbayError } from '@patchbay/core';
import type { Headers, Message } from '../bus.js';
import { RemoteError } from '../bus-error.js';
import type { MemoryExchange } from './memory-exchange.js';

/** The caller's end of a request or stream, as the exchanges of its responders see it. */
export interface MemoryCall {
  readonly wants: 'unary' | 'stream';
  /** The whole answer. */
  reply(exchange: MemoryExchange, body: Uint8Array, headers: Headers): void;
  /** One part; resolves when there is room for the next. */
  write(exchange: MemoryExchange, body: Uint8Array, headers: Headers): Promise<void>;
  end(exchange: MemoryExchange, headers: Headers): void;
  fail(exchange: MemoryExchange, error: RemoteError): void;
}

/**
 * The responders of one call: nearly always one, more when plain subscribers overhear a queue group. The first to
 * answer owns the call, and the others are told that nobody waits for them.
 */
export class Responders {
  #first: MemoryExchange | undefined;
  #others: MemoryExchange[] | undefined;

  add(exchange: MemoryExchange): void {
    if (this.#first === undefined) this.#first = exchange;
    else (this.#others ??= []).push(exchange);
  }

  /** Whether `exchange` may answer; it is the only one from then on. */
  claim(exchange: MemoryExchange): boolean {
    if (this.#others === undefined) return this.#first === exchange;
    if (this.#first !== exchange && !this.#others.includes(exchange)) return false;
    const losers = [this.#first, ...this.#others].filter((candidate) => candidate !== exchange);
    this.#first = exchange;
    this.#others = undefined;
    for (const loser of losers) loser?.release();
    return true;
  }

  /** Ends every exchange without a word to its signal: the call is over. */
  release(): void {
    this.#each((exchange) => {
      exchange.release();
    });
  }

  /** Ends every exchange because the caller is gone. */
  abort(reason: PatchbayError): void {
    this.#each((exchange) => {
      exchange.abort(reason);
    });
  }

  #each(act: (exchange: MemoryExchange) => void): void {
    const first = this.#first;
    const others = this.#others;
    this.#first = undefined;
    this.#others = undefined;
    if (first !== undefined) act(first);
    if (others !== undefined) for (const exchange of others) act(exchange);
  }
}

/** A message on its way back. */
export function answer(subject: string, body: Uint8Array, headers: Headers): Message {
  return { subject, body, headers };
}
