import type { IncomingMessage } from 'node:http';

/** What came of reading a body. `aborted`: the client left, nobody is there to be answered. */
export type RequestBody =
  { readonly kind: 'complete'; readonly bytes: Buffer } | { readonly kind: 'too_large' } | { readonly kind: 'aborted' };

/**
 * Reads a request's body up to `maxBytes`. Of a larger one nothing is kept: the rest is read and dropped, so that a
 * client that is still sending gets to see the answer; the server's own request timeout bounds that.
 *
 * Hot path: a small body arrives in one piece and is not copied, and `onRead` (called once, never from within this
 * call) is no promise, so that the call goes on in the same turn of the event loop.
 */
export function readRequestBody(request: IncomingMessage, maxBytes: number, onRead: (body: RequestBody) => void): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
    request.resume();
    queueMicrotask(() => onRead({ kind: 'too_large' }));
    return;
  }
  let chunks: Buffer[] = [];
  let size = 0;
  let isOver = false;
  const settle = (body: RequestBody): void => {
    if (isOver) return;
    isOver = true;
    onRead(body);
  };
  const onData = (chunk: Buffer): void => {
    size += chunk.length;
    if (size <= maxBytes) {
      chunks.push(chunk);
      return;
    }
    chunks = [];
    request.off('data', onData);
    request.resume();
    settle({ kind: 'too_large' });
  };
  request.on('data', onData);
  // `on`, not `once`: both come at most once, and the wrapper that takes itself off costs more than the listener.
  request.on('end', () => {
    const [only] = chunks;
    settle({ kind: 'complete', bytes: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks) });
  });
  // Also follows 'end'. A connection that breaks ends in it too: Node emits no 'error' when nobody listens for one.
  request.on('close', () => settle({ kind: 'aborted' }));
}
