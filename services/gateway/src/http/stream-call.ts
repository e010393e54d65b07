import { BusHeader } from '@patchbay/bus';
import type { Bus, Headers, Message } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import { describeError, wordError } from './call-error.js';
import type { ErrorWording } from './call-error.js';
import type { CallRouter } from './call-router.js';
import { isTaskEvent, isTerminalTaskEvent, wrapTaskData, wrapTaskPayload } from './hybrid-envelope.js';
import { Keepalive } from './keepalive.js';
import type { SseWriter } from './sse-writer.js';
import { relayedHeaders } from './unary-call.js';
import type { OutboundCall } from './unary-call.js';

/** One call that is answered with events. */
export interface StreamCall extends OutboundCall {
  readonly writer: SseWriter;
  readonly wording: ErrorWording;
  /** 0 = no keepalives. */
  readonly keepaliveMs: number;
  /** The headers wait for the first event or error, so that an early error is an ordinary answer; at most so long. */
  readonly holdMs: number;
  /** The caller speaks KubeMQ's dialect as far as is known before the first event. */
  readonly isKubemqCaller: boolean;
}

/** How a stream ended, as far as the client can still be told. */
export type StreamOutcome =
  /** Everything was written. */
  | { readonly kind: 'streamed'; readonly error?: unknown }
  /** The agent gave a whole answer instead. */
  | { readonly kind: 'whole'; readonly reply: Message }
  /** It failed before anything was written. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The client left. */
  | { readonly kind: 'left' };

/** Relays streams from dispatch to clients, event by event; the client's pace is the agent's. */
export class StreamCaller {
  readonly #bus: Bus;
  readonly #router: CallRouter;

  constructor(options: { readonly bus: Bus; readonly router: CallRouter }) {
    this.#bus = options.bus;
    this.#router = options.router;
  }

  /** Runs the call to its end. Never rejects. `onAnswer` is called once, before anything is written. */
  async run(call: StreamCall, onAnswer: (error?: unknown) => void): Promise<StreamOutcome> {
    const { writer } = call;
    let parts: AsyncIterator<Message> | undefined;
    let hasAnswered = false;
    const answer = (error?: unknown): void => {
      if (!hasAnswered) onAnswer(error);
      hasAnswered = true;
    };
    const hold = setTimeout(() => {
      answer();
      writer.open();
    }, call.holdMs);
    const keepalive = new Keepalive(call.keepaliveMs, () => {
      answer();
      writer.writeKeepalive();
    });
    const relay = new EventRelay(call);
    try {
      const opened = await this.#router.run(call, (subject, headers, timeoutMs) =>
        this.#open(call, subject, headers, timeoutMs),
      );
      clearTimeout(hold);
      parts = opened.parts;
      let next = opened.first;
      if (next.done === true) throw new PatchbayError('agent_bad_reply', 'the stream ended without an event');
      answer();
      const isWhole = next.value.headers[BusHeader.content] === 'json';
      if (isWhole && !writer.isOpen) return { kind: 'whole', reply: next.value };
      while (next.done !== true && !call.signal.aborted) {
        const isLast = relay.write(next.value);
        keepalive.reset();
        if (isLast) break;
        const drained = writer.drained();
        if (drained !== undefined) await drained;
        next = await opened.parts.next();
      }
      if (call.signal.aborted) return { kind: 'left' };
      writer.end();
      return { kind: 'streamed' };
    } catch (error) {
      answer(error);
      if (call.signal.aborted) return { kind: 'left' };
      if (!writer.isOpen) return { kind: 'failed', error };
      relay.writeError(error);
      writer.end();
      return { kind: 'streamed', error };
    } finally {
      clearTimeout(hold);
      keepalive.stop();
      // Tells dispatch when we are the ones who end it. A failure of that has nobody to go to: the call is over.
      await parts?.return?.().catch(() => undefined);
    }
  }

  /** Opens the stream as far as its first part: only then is it known whether anybody serves it. */
  async #open(call: StreamCall, subject: string, headers: Headers, timeoutMs: number): Promise<OpenedStream> {
    const { body, signal } = call;
    const stream = this.#bus.stream(subject, body, { timeoutMs, headers, signal });
    const parts = stream[Symbol.asyncIterator]();
    return { parts, first: await parts.next() };
  }
}

/** A stream and its first part. */
interface OpenedStream {
  readonly parts: AsyncIterator<Message>;
  readonly first: IteratorResult<Message>;
}

/** Turns parts into events; knows which of the two dialects the stream is in. */
class EventRelay {
  readonly #call: StreamCall;
  #sawTaskEvent = false;
  #sawJsonRpc = false;

  constructor(call: StreamCall) {
    this.#call = call;
  }

  /** Writes a part as one event. @returns whether nothing may follow it */
  write(part: Message): boolean {
    const name = part.headers[BusHeader.eventName];
    const headers = relayedHeaders(part.headers);
    if (isTaskEvent(name)) {
      const wrapped = wrapTaskData(name, part.body);
      if (wrapped !== undefined) {
        this.#sawTaskEvent = true;
        // KubeMQ's streams have no event ids: some of its clients take a keepalive after one for an event.
        this.#call.writer.write({ name, data: wrapped }, headers);
        return isTerminalTaskEvent(name);
      }
    }
    this.#sawJsonRpc ||= part.body.includes(0x7b) && asBuffer(part.body).includes('"jsonrpc"');
    this.#call.writer.write({ name, id: part.headers[BusHeader.eventId], data: part.body }, headers);
    return false;
  }

  /** Says that the stream broke, in the words of its dialect: a stream that was cut must never look finished. */
  writeError(error: unknown): void {
    const { writer, wording } = this.#call;
    if (this.#sawTaskEvent || (this.#call.isKubemqCaller && !this.#sawJsonRpc)) {
      writer.write({ name: 'task.error', data: wrapTaskPayload('task.error', describeError(error, wording)) });
    } else {
      // What the official SDK's own server does.
      writer.write({ name: 'error', data: wordError(error, wording).body });
    }
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
