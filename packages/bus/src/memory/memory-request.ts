import { PatchbayError } from '@patchbay/core';
import type { Headers, Message } from '../bus.js';
import { DeadlineExceededError } from '../bus-error.js';
import type { RemoteError } from '../bus-error.js';
import { WheelEntry } from '../deadline-wheel.js';
import type { DeadlineWheel } from '../deadline-wheel.js';
import { rejected } from '../ended-exchange.js';
import { listenToAbort, stopListening } from '../common-signal.js';
import { answer, Responders } from './memory-call.js';
import type { MemoryCall } from './memory-call.js';
import type { MemoryExchange } from './memory-exchange.js';

/** One request that waits for its reply. Hot path: it is its own deadline and its own abort listener. */
export class MemoryRequest extends WheelEntry implements MemoryCall {
  readonly wants = 'unary';
  readonly responders = new Responders();
  readonly #subject: string;
  readonly #timeoutMs: number;
  readonly #wheel: DeadlineWheel;
  readonly #signal: AbortSignal | undefined;
  readonly #resolve: (reply: Message) => void;
  readonly #reject: (error: Error) => void;
  #part: Message | undefined;
  #settled = false;

  constructor(
    call: { readonly subject: string; readonly timeoutMs: number; readonly signal: AbortSignal | undefined },
    wheel: DeadlineWheel,
    resolve: (reply: Message) => void,
    reject: (error: Error) => void,
  ) {
    super();
    this.#subject = call.subject;
    this.#timeoutMs = call.timeoutMs;
    this.#signal = call.signal;
    this.#wheel = wheel;
    this.#resolve = resolve;
    this.#reject = reject;
    if (call.signal !== undefined) listenToAbort(call.signal, this);
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  reply(exchange: MemoryExchange, body: Uint8Array, headers: Headers): void {
    if (!this.responders.claim(exchange)) return;
    this.#settle();
    this.#resolve(answer(this.#subject, body, headers));
  }

  write(exchange: MemoryExchange, body: Uint8Array, headers: Headers): Promise<void> {
    if (!this.responders.claim(exchange)) return rejected(lostError());
    if (this.#part !== undefined) {
      const error = new PatchbayError('internal', `${this.#subject} answered one request with several parts`);
      this.#settle();
      this.#reject(error);
      return rejected(error);
    }
    this.#part = answer(this.#subject, body, headers);
    return Promise.resolve();
  }

  end(exchange: MemoryExchange, headers: Headers): void {
    if (!this.responders.claim(exchange)) return;
    this.#settle();
    this.#resolve(this.#part ?? answer(this.#subject, new Uint8Array(0), headers));
  }

  fail(exchange: MemoryExchange, error: RemoteError): void {
    if (!this.responders.claim(exchange)) return;
    this.#settle();
    this.#reject(error);
  }

  /** The caller's signal aborted. */
  handleEvent(): void {
    this.cancel(new PatchbayError('cancelled', `the call to ${this.#subject} was cancelled`));
  }

  /** Ends the call from the caller's side. */
  cancel(error: PatchbayError): void {
    if (this.#settled) return;
    this.#stop();
    this.responders.abort(error);
    this.#reject(error);
  }

  override onDue(): void {
    if (this.#settled) return;
    this.#settle();
    this.#reject(new DeadlineExceededError(this.#subject, this.#timeoutMs));
  }

  #settle(): void {
    this.#stop();
    this.responders.release();
  }

  #stop(): void {
    this.#settled = true;
    this.#wheel.remove(this);
    if (this.#signal !== undefined) stopListening(this.#signal, this);
  }
}

function lostError(): PatchbayError {
  return new PatchbayError('cancelled', 'another subscriber has answered this call');
}
