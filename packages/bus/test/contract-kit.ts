import { PatchbayError } from '@patchbay/core';
import type { Delivery, Handler, Headers, Message, Subscription } from '@patchbay/bus';
import type { BusPair } from './bus-adapter.js';

export const text = (words: string): Uint8Array => Buffer.from(words);
export const words = (message: { readonly body: Uint8Array }): string => Buffer.from(message.body).toString();
export const NOTHING = new Uint8Array(0);

/** Bytes that differ everywhere, so that swapped or missing pieces are seen. */
export function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = (at * 31 + (at >> 8) * 7 + (at >> 16)) & 0xff;
  return bytes;
}

/** Serves `subject` at the responder, known to the caller when it resolves. */
export async function serve(pair: BusPair, subject: string, handler: Handler, queue = 'q'): Promise<Subscription> {
  const subscription = pair.responder.subscribe(subject, handler, { queue });
  await pair.settle();
  return subscription;
}

/** The error that `promise` rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<PatchbayError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof PatchbayError) return error;
    throw error;
  }
  throw new Error('expected an error, and there was none');
}

/** Reads a stream to its end. */
export async function readAll(parts: AsyncIterable<Message>): Promise<Message[]> {
  const all: Message[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

/** The exchange of a message that was sent as a call. */
export function exchangeOf(delivery: Delivery): NonNullable<Delivery['exchange']> {
  if (delivery.exchange === undefined) throw new Error('the message came without an exchange');
  return delivery.exchange;
}

/** A handler that answers with what it got. */
export function echo(delivery: Delivery): void {
  exchangeOf(delivery).reply(delivery.body, delivery.headers);
}

export function header(message: { readonly headers: Headers }, name: string): string | undefined {
  return message.headers[name];
}

/** Resolves in `ms`; for letting time pass that is itself the subject of a test. */
export function pass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Resolves when nothing of a call is left on either side. */
export function isIdle(pair: BusPair): boolean {
  return [pair.caller, pair.responder].every((bus) => {
    const { requests, streams, exchanges, timers } = bus.stats();
    return requests === 0 && streams === 0 && exchanges === 0 && timers === 0;
  });
}
