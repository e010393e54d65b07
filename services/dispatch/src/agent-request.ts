import type { Dispatcher } from 'undici';
import { describeFailure } from './agent-failure.js';
import type { AgentFailure } from './agent-failure.js';
import { ResponseHeaders } from './response-headers.js';

/** Who gets the response of an {@link AgentRequest}. After `end`, `failed` or `abort()` nothing more is told. */
export interface ResponseReader {
  /** The final status and headers. */
  start(status: number, headers: ResponseHeaders): void;
  data(chunk: Buffer): void;
  /** The whole body has come, as its framing says. */
  end(): void;
  failed(failure: AgentFailure): void;
}

/** What is sent. */
export interface AgentRequestOptions {
  readonly origin: string;
  readonly path: string;
  readonly headers: string[];
  readonly body: Uint8Array;
}

/**
 * One POST to an agent, on undici's `dispatch` with a handler object (hot path: a fifth faster than `request()`). The
 * methods are those that undici 7 calls itself: it puts two objects around a handler with the newer ones, and parses
 * all headers of each response for it.
 *
 * A connection that failed before anything was sent is tried once more. Once a byte may have gone nothing is repeated:
 * the agent may have acted on it.
 */
export class AgentRequest implements Dispatcher.DispatchHandler {
  readonly #client: Dispatcher;
  readonly #options: AgentRequestOptions;
  readonly #reader: ResponseReader;
  #abort: ((reason?: Error) => void) | undefined;
  #resume: (() => void) | undefined;
  #isPaused = false;
  #attempts = 0;
  #hasResponse = false;
  #isOver = false;

  constructor(client: Dispatcher, options: AgentRequestOptions, reader: ResponseReader) {
    this.#client = client;
    this.#options = options;
    this.#reader = reader;
  }

  send(): void {
    this.#attempts += 1;
    // Written out, not spread: undici reads twenty members of it, which is slow unless all have one shape.
    const { origin, path, headers, body } = this.#options;
    this.#client.dispatch({ origin, path, method: 'POST', headers, body }, this);
  }

  /** Ends it at once and closes the connection; the reader hears nothing more. Idempotent. */
  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // Until `onConnect` the connection is still being made; that then ends it before a byte is sent.
    this.#abort?.(ABORTED);
  }

  /** Stops reading after the current chunk, so that the agent is slowed by TCP. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Reads on. Never called from within a reader's own method: the parser is not reentrant. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#resume?.();
  }

  onConnect(abort: (reason?: Error) => void): void {
    this.#abort = abort;
    if (this.#isOver) abort(ABORTED);
  }

  /** @returns whether to read on */
  onHeaders(status: number, headers: Buffer[], resume: () => void): boolean {
    this.#resume = resume;
    if (!this.#isOver && status >= 200) {
      this.#hasResponse = true;
      this.#reader.start(status, new ResponseHeaders(headers));
    }
    return !this.#isPaused;
  }

  /** @returns whether to read on */
  onData(chunk: Buffer): boolean {
    if (!this.#isOver) this.#reader.data(chunk);
    return !this.#isPaused;
  }

  onComplete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reader.end();
  }

  onError(error: Error): void {
    if (this.#isOver) return;
    const stage = this.#hasResponse ? 'reading' : this.#abort === undefined ? 'connecting' : 'waiting';
    const failure = describeFailure(error, stage);
    if (failure.code === 'agent_unreachable' && this.#attempts === 1) {
      // Not from within the client's own failure handling: it is about to forget this connection.
      queueMicrotask(() => {
        if (!this.#isOver) this.send();
      });
      return;
    }
    this.#isOver = true;
    this.#reader.failed(failure);
  }
}

/** Reason of every abort of ours; one object, since nobody reads it. */
const ABORTED = new Error('given up by the gateway');
