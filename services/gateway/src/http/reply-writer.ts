import type { ServerResponse } from 'node:http';
import type { ByteBudget } from '@patchbay/core';
import { assertRoom, countUnread } from './unread-reply.js';

/** An answer that is complete. */
export interface WholeReply {
  readonly status: number;
  readonly traceId: string;
  readonly body: Uint8Array;
  /** Further headers, names and values in turn. */
  readonly headers?: readonly string[];
}

/** Writes whole answers of the hot path, past Fastify's own. Frees what clients that stop reading would hold. */
export class ReplyWriter {
  readonly #stalledReplyMs: number;
  readonly #isDraining: () => boolean;
  readonly #budget: ByteBudget;

  constructor(options: {
    readonly stalledReplyMs: number;
    readonly isDraining: () => boolean;
    readonly budget: ByteBudget;
  }) {
    this.#stalledReplyMs = options.stalledReplyMs;
    this.#isDraining = options.isDraining;
    this.#budget = options.budget;
  }

  /** @throws PatchbayError rate_limited when there is no room for a reply of so many bytes */
  assertRoom(bytes: number): void {
    assertRoom(bytes, this.#budget);
  }

  /** Answers with JSON, or with nothing when the body is empty. Does nothing when the client has left. */
  write(response: ServerResponse, reply: WholeReply): void {
    if (response.destroyed || response.headersSent) return;
    if (this.#isDraining()) response.shouldKeepAlive = false;
    const headers = ['X-Trace-Id', reply.traceId, 'Content-Length', String(reply.body.length)];
    if (reply.body.length > 0) headers.push('Content-Type', 'application/json');
    if (reply.headers !== undefined) headers.push(...reply.headers);
    response.writeHead(reply.status, headers);
    endWith(response, reply.body);
    guardReply(response, this.#stalledReplyMs, this.#budget);
  }
}

/** Up to here a copy is cheaper than a second buffer in the system call. */
const SMALL_BODY_BYTES = 16_384;

/**
 * A small body as text goes out in one buffer with the headers; latin1 keeps each byte as it is. Hot path: `end(body)`
 * would add an empty buffer behind it, and two make a vector of buffers for the system call; so the one is sent first,
 * and the end has nothing more to send.
 */
function endWith(response: ServerResponse, body: Uint8Array): void {
  if (body.length > SMALL_BODY_BYTES || body.length === 0) {
    response.end(body);
    return;
  }
  response.write(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1');
  // Node corks the socket at the first write until the turn is over; an answer that waits behind another has none yet.
  response.uncork();
  response.end();
}

/** Gives up an ended answer of which the client takes nothing for `stalledMs`, or sooner when there is no room for it. */
export function guardReply(response: ServerResponse, stalledMs: number, budget: ByteBudget): void {
  // Small answers are in the kernel's hands by now. Node lets the clock run from the last progress of a write, and
  // sets its own keep-alive clock when the answer is finished.
  if (response.writableLength === 0) return;
  response.setTimeout(stalledMs, () => response.destroy());
  countUnread(response, budget);
}
