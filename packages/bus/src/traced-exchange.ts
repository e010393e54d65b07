import type { ErrorCode } from '@patchbay/core';
import type { CallSpan } from '@patchbay/telemetry';
import type { Exchange, Headers } from './bus.js';

/** An exchange whose span ends with it: when it is answered, when its caller goes, or when its time is over. */
export class TracedExchange implements Exchange {
  readonly #exchange: Exchange;
  readonly #span: CallSpan;
  readonly #deadline: NodeJS.Timeout | undefined;
  #ended = false;

  /** @param leftMs Time until the caller gives up; undefined when the responder keeps the clock. */
  constructor(exchange: Exchange, span: CallSpan, leftMs: number | undefined) {
    this.#exchange = exchange;
    this.#span = span;
    exchange.signal.addEventListener('abort', this, { once: true });
    if (leftMs === undefined) return;
    this.#deadline = setTimeout(() => {
      this.endSpan('deadline_exceeded', 'not answered in time');
    }, leftMs);
    this.#deadline.unref();
  }

  get wants(): 'unary' | 'stream' | 'any' {
    return this.#exchange.wants;
  }

  get deadlineMs(): number {
    return this.#exchange.deadlineMs;
  }

  get signal(): AbortSignal {
    return this.#exchange.signal;
  }

  confirm(): Promise<boolean> {
    return this.#exchange.confirm();
  }

  reply(body: Uint8Array, headers?: Headers): void {
    this.#exchange.reply(body, headers);
    this.endSpan();
  }

  write(body: Uint8Array, headers?: Headers): Promise<void> {
    return this.#exchange.write(body, headers);
  }

  end(headers?: Headers): void {
    this.#exchange.end(headers);
    this.endSpan();
  }

  fail(code: ErrorCode, message: string, body?: Uint8Array, headers?: Headers): void {
    this.#exchange.fail(code, message, body, headers);
    this.endSpan(code, message);
  }

  /** The caller went. */
  handleEvent(): void {
    this.endSpan('cancelled', 'the caller went');
  }

  /** Ends the span, failed when there is a code. The first end counts. */
  endSpan(code?: ErrorCode, message = ''): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#deadline);
    this.#exchange.signal.removeEventListener('abort', this);
    if (code !== undefined) this.#span.fail(code, message);
    this.#span.end();
  }
}
