import type { ServerResponse } from 'node:http';
import type { ByteBudget } from '@patchbay/core';
import { encodeSseEvent, KEEPALIVE } from './sse-event.js';
import type { SseEvent } from './sse-event.js';
import { assertRoom, countUnread } from './unread-reply.js';

/** How an event stream is answered. */
export interface SseWriterOptions {
  readonly traceId: string;
  /** A reader that takes nothing for so long is given up. */
  readonly stalledMs: number;
  readonly isDraining: () => boolean;
  readonly budget: ByteBudget;
}

/** The client's end of an event stream: one write for an event, and no more in memory than the socket takes. */
export class SseWriter {
  readonly #response: ServerResponse;
  readonly #options: SseWriterOptions;

  constructor(response: ServerResponse, options: SseWriterOptions) {
    this.#response = response;
    this.#options = options;
  }

  /** Whether the headers are out; an error can be an ordinary answer only before that. */
  get isOpen(): boolean {
    return this.#response.headersSent;
  }

  /** Sends the headers now, without an event. Idempotent. */
  open(headers: readonly string[] = []): void {
    this.#writeHead(headers);
    this.#response.flushHeaders();
  }

  /**
   * Sends one event. Await {@link drained} before the next.
   * @param headers sent with the first, names and values
   * @throws PatchbayError rate_limited when there is no room for a large one
   */
  write(event: SseEvent, headers: readonly string[] = []): void {
    if (this.#response.destroyed) return;
    assertRoom(event.data.length, this.#options.budget);
    this.#writeHead(headers);
    this.#response.write(encodeSseEvent(event));
    countUnread(this.#response, this.#options.budget);
  }

  /** Sends a keepalive, unless the client still has something to read: then it is not needed. */
  writeKeepalive(): void {
    if (this.#response.destroyed || this.#response.writableNeedDrain) return;
    this.#writeHead([]);
    this.#response.write(KEEPALIVE);
  }

  /**
   * Resolves when the socket takes more: at once for a fast reader. Destroys the socket of a reader that takes nothing
   * for too long; resolves then too.
   */
  drained(): Promise<void> | undefined {
    const response = this.#response;
    if (response.destroyed || !response.writableNeedDrain) return undefined;
    return new Promise((resolve) => {
      const stalled = setTimeout(() => response.destroy(), this.#options.stalledMs);
      const done = (): void => {
        clearTimeout(stalled);
        response.off('drain', done);
        response.off('close', done);
        resolve();
      };
      response.on('drain', done);
      response.on('close', done);
    });
  }

  /** Ends the stream. */
  end(): void {
    if (!this.#response.destroyed) this.#response.end();
  }

  #writeHead(headers: readonly string[]): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#response.writeHead(200, [
      'Content-Type',
      'text/event-stream',
      'Cache-Control',
      'no-cache',
      'Connection',
      // A client that asked for `close` waits for it.
      this.#response.shouldKeepAlive && !this.#options.isDraining() ? 'keep-alive' : 'close',
      // Proxies that buffer by default pass it on event by event.
      'X-Accel-Buffering',
      'no',
      'X-Trace-Id',
      this.#options.traceId,
      ...headers,
    ]);
  }
}
