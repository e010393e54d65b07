import type { IncomingMessage } from 'node:http';

/** Why a request is refused before anybody looks at what it asks for. */
export interface ImproperRequest {
  readonly status: 400 | 417 | 501;
  readonly error: string;
}

/**
 * What makes a request one that HTTP/1.1 does not allow, or that would be misunderstood here. Node's parser refuses the
 * rest. Hot path. Source: RFC 9112 sections 3.2 and 6.1, RFC 9110 section 10.1.1.
 */
export function findImproper(request: IncomingMessage): ImproperRequest | undefined {
  const { headers, httpVersion } = request;
  if (headers.host === undefined) {
    if (httpVersion === '1.0') return undefined;
    return { status: 400, error: 'the Host header is missing' };
  }
  if (isRepeated(request.rawHeaders, 'host')) return { status: 400, error: 'the Host header is given twice' };
  const encoding = headers['transfer-encoding'];
  // Compressed bytes would go to the agent as if they were JSON.
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
    return { status: 501, error: 'of transfer codings only chunked is understood; send the body as it is' };
  }
  const { expect } = headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return { status: 417, error: 'of expectations only 100-continue is understood' };
  }
  return undefined;
}

/** @param name in lower case */
function isRepeated(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at];
    if (raw?.length === name.length && raw.toLowerCase() === name) count += 1;
  }
  return count > 1;
}
