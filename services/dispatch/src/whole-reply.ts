import type { AgentFailure } from './agent-failure.js';
import { failureOfStatus } from './http-status.js';
import type { ResponseHeaders } from './response-headers.js';

/** Collects a response body up to a limit, refusing what is larger before it is held. */
export class WholeReply {
  readonly #maxBytes: number;
  #expectedBytes = 0;
  #bytes: Buffer = EMPTY;
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Looks at status and headers. @returns why the reply is refused, before any of its content is looked at. */
  start(status: number, headers: ResponseHeaders): AgentFailure | undefined {
    const failure = failureOfStatus(status);
    if (failure !== undefined) return failure;
    const contentLength = Number(headers.get('content-length') ?? 0);
    if (contentLength > this.#maxBytes) return this.#tooLarge();
    if (contentLength > 0) this.#expectedBytes = contentLength;
    return encodingFailure(headers);
  }

  /** Takes the next chunk. @returns why the reply is refused: it is over the limit. */
  add(chunk: Buffer): AgentFailure | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return this.#tooLarge();
    if (this.#length === 0) {
      // Most replies are one chunk, which is kept as it came.
      this.#bytes = chunk;
    } else {
      this.#append(chunk, length);
    }
    this.#length = length;
    return undefined;
  }

  /** All that has come. */
  get body(): Buffer {
    return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
  }

  // One growing buffer, not a list of chunks: a body that arrives byte by byte must not cost a hundred times its size.
  #append(chunk: Buffer, length: number): void {
    if (this.#length === this.#bytes.length || length > this.#bytes.length) {
      const capacity = Math.min(this.#maxBytes, Math.max(length * 2, this.#expectedBytes));
      const grown = Buffer.allocUnsafeSlow(capacity);
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    chunk.copy(this.#bytes, this.#length);
  }

  #tooLarge(): AgentFailure {
    return { code: 'response_too_large', detail: `over ${this.#maxBytes} bytes` };
  }
}

/** Agents are never offered a compression; one that compresses all the same cannot be relayed byte for byte. */
export function encodingFailure(headers: ResponseHeaders): AgentFailure | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase();
  if (encoding === undefined || encoding === '' || encoding === 'identity') return undefined;
  return { code: 'agent_bad_reply', detail: `Content-Encoding ${encoding.slice(0, 40)} was not asked for` };
}

const EMPTY = Buffer.alloc(0);
