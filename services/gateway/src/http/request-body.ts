import type { IncomingMessage } from 'node:http';

/** What came of reading a body. `aborted`: the client left, nobody is there to be answered. */
export type RequestBody =
  { readonly kind: 'complete'; readonly bytes: Buffer } | { readonly kind: 'too_large' } | { readonly kind: 'aborted' };

/**
 * Reads a request's body up to `maxBytes`. Of a larger one nothing is kept: the rest is read and dropped, so that a
 * client that is still sending gets to see the answer; the server's own request timeout bounds that.
 * Hot path: a small body arrives in one piece and is not copied.
 */
export function readRequestBody(request: IncomingMessage, maxBytes: number): Promise<RequestBody> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
    request.resume();
    return Promise.resolve({ kind: 'too_large' });
  }
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks = [];
      request.off('data', onData);
      request.resume();
      resolve({ kind: 'too_large' });
    };
    request.on('data', onData);
    request.once('end', () => {
      const [only] = chunks;
      resolve({ kind: 'complete', bytes: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks) });
    });
    // 'close' also follows 'end', when the promise is settled already.
    request.once('close', () => resolve({ kind: 'aborted' }));
    request.once('error', () => resolve({ kind: 'aborted' }));
  });
}
