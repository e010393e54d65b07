import { GrowingBytes } from '@patchbay/core';
import type { ByteBudget, ByteClaim } from '@patchbay/core';
import type { AgentFailure } from './agent-failure.js';
import { failureOfStatus } from './http-status.js';
import type { ResponseHeaders } from './response-headers.js';

/** Limits of {@link WholeReply}. */
export interface ReplyLimits {
  /** Largest reply, bytes. */
  readonly maxResponseBytes: number;
  /** The process's bound for what it holds for clients. */
  readonly budget: ByteBudget;
}

/** Collects a response body up to a limit, refusing what is larger before it is held. */
export class WholeReply {
  readonly #maxBytes: number;
  readonly #bytes: GrowingBytes;
  readonly #budget: ByteBudget;

  /** @param room for what is held; given back by its owner. */
  constructor({ maxResponseBytes, budget }: ReplyLimits, room: Pick<ByteClaim, 'reserve'>) {
    this.#maxBytes = maxResponseBytes;
    this.#budget = budget;
    this.#bytes = new GrowingBytes(maxResponseBytes, room);
  }

  /** Looks at status and headers. @returns why the reply is refused, before any of its content is looked at. */
  start(status: number, headers: ResponseHeaders): AgentFailure | undefined {
    const failure = failureOfStatus(status);
    if (failure !== undefined) return failure;
    const contentLength = Number(headers.get('content-length') ?? 0);
    if (contentLength > this.#maxBytes) return this.#tooLarge();
    if (contentLength > 0) this.#bytes.expect(contentLength);
    return encodingFailure(headers);
  }

  /** Takes the next chunk. @returns why the reply is refused: it is over the limit, or there is no room for it. */
  add(chunk: Buffer): AgentFailure | undefined {
    const refusal = this.#bytes.add(chunk);
    if (refusal === undefined) return undefined;
    this.#bytes.clear();
    return refusal === 'too_large' ? this.#tooLarge() : { code: 'rate_limited', detail: this.#budget.refusalWords };
  }

  /** All that has come. */
  get body(): Buffer {
    return this.#bytes.bytes;
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
