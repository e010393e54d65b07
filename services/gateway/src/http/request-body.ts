import type { IncomingMessage, ServerResponse } from 'node:http';
import { GrowingBytes } from '@patchbay/core';
import type { ByteBudget, ByteClaim } from '@patchbay/core';

/**
 * What came of reading a body. `aborted`: the client left, nobody is there to be answered. `no_room`: the gateway holds
 * too much for its clients already.
 */
export type RequestBody =
  | { readonly kind: 'complete'; readonly bytes: Buffer }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'no_room' }
  | { readonly kind: 'aborted' };

/** A request, and what says by its `close` that nobody needs the body any more: the response to it. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse | IncomingMessage;
}

/** How much of a body is read. */
export interface RequestBodyLimits {
  readonly maxBytes: number;
  readonly budget: ByteBudget;
}

/**
 * Reads a request's body. Of one that is too large or finds no room nothing is kept: the rest is read and dropped, so
 * that a client that is still sending gets to see the answer; the server's own request timeout bounds that. The room of
 * a large one is given back when the response is over.
 *
 * Hot path: a small body arrives in one piece and is not copied, and `onRead` (called once, never from within this
 * call) is no promise, so that the call goes on in the same turn of the event loop.
 */
export function readRequestBody(
  { request, response }: Exchange,
  { maxBytes, budget }: RequestBodyLimits,
  onRead: (body: RequestBody) => void,
): void {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > maxBytes) {
    request.resume();
    queueMicrotask(() => onRead({ kind: 'too_large' }));
    return;
  }
  let first: Buffer | undefined;
  let all: GrowingBytes | undefined;
  let claim: ByteClaim | undefined;
  let isOver = false;
  const settle = (body: RequestBody): void => {
    if (isOver) return;
    isOver = true;
    onRead(body);
  };
  const onData = (chunk: Buffer): void => {
    if (first === undefined && chunk.length <= maxBytes) {
      first = chunk;
      return;
    }
    if (all === undefined) {
      claim = budget.claim();
      response.once('close', () => claim?.release());
      all = new GrowingBytes(maxBytes, claim);
      all.expect(announced);
      if (first !== undefined) all.add(first);
    }
    const refusal = all.add(chunk);
    if (refusal === undefined) return;
    all = undefined;
    claim?.release();
    request.off('data', onData);
    request.resume();
    settle({ kind: refusal });
  };
  request.on('data', onData);
  // `on`, not `once`: both come at most once, and the wrapper that takes itself off costs more than the listener.
  request.on('end', () => settle({ kind: 'complete', bytes: all?.bytes ?? first ?? NOTHING }));
  // Also follows 'end'. A connection that breaks ends in it too: Node emits no 'error' when nobody listens for one.
  request.on('close', () => settle({ kind: 'aborted' }));
}

const NOTHING = Buffer.alloc(0);
