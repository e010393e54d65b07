import { createServer, STATUS_CODES } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { newTraceContext, traceIdOf } from '@patchbay/telemetry';
import type { HttpPatience } from './front-options.js';

/** How often Node looks for connections that took too long. */
const CHECK_INTERVAL_MS = 500;
/** Longer than the 60 s after which load balancers drop idle connections, so that they close first. */
const KEEP_ALIVE_MS = 72_000;
/** More than any client needs; more is answered with 431. */
const MAX_HEADER_BYTES = 16_384;
/** How long a client that sent garbage may take to read why it is refused. */
const LAST_WORD_MS = 250;

/** An HTTP/1.1 server that is patient only so far. No `upgrade` listener: h2c offers are answered as plain requests. */
export function createHttpServer(listener: RequestListener, patience: HttpPatience): Server {
  const server = createServer(
    {
      // Node looks at intervals, so a limit holds only when it is shorter by one of them.
      headersTimeout: Math.max(patience.headersMs - CHECK_INTERVAL_MS, CHECK_INTERVAL_MS),
      requestTimeout: Math.max(patience.requestMs - CHECK_INTERVAL_MS, CHECK_INTERVAL_MS),
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      noDelay: true,
      // Node would refuse without a word; the listener does it with one.
      requireHostHeader: false,
    },
    listener,
  );
  // Node would drop what is beyond a number silently; the limit on bytes is enough.
  server.maxHeadersCount = 0;
  // Without this Node refuses what it does not know of with an empty body.
  server.on('checkExpectation', listener);
  server.on('clientError', refuse);
  return server;
}

const STATUS_BY_CODE: Readonly<Record<string, { status: number; error: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, error: `the headers are longer than ${MAX_HEADER_BYTES} bytes` },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, error: 'the request took too long to arrive' },
};

const refused = new WeakSet<Duplex>();

/** Answers what Node's parser refused with a short status, and closes the connection whatever the client does. */
function refuse(error: Error & { code?: string }, socket: Duplex): void {
  if (refused.has(socket)) return;
  refused.add(socket);
  if (error.code === 'ECONNRESET' || !socket.writable || hasAnswerStarted(socket)) {
    socket.destroy();
    return;
  }
  const { status, error: reason } = STATUS_BY_CODE[error.code ?? ''] ?? { status: 400, error: 'not valid HTTP/1.1' };
  const body = JSON.stringify({ error: reason });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nX-Trace-Id: ${traceIdOf(newTraceContext())}\r\nConnection: close\r\n\r\n${body}`,
  );
  setTimeout(() => socket.destroy(), LAST_WORD_MS).unref();
}

/** Whether bytes of an answer are already on the wire; Node's own handler looks at the same (undocumented) member. */
function hasAnswerStarted(socket: Duplex): boolean {
  const { _httpMessage: answer } = socket as { _httpMessage?: { headersSent: boolean } | null };
  return answer?.headersSent ?? false;
}
