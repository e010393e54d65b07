import type { ErrorCode } from '@patchbay/core';

/** How a call of an agent went wrong: the code, and what happened in words that may be shown to the caller. */
export interface AgentFailure {
  readonly code: ErrorCode;
  readonly detail: string;
}

/** How far a request had come when its connection failed. */
export type RequestStage = 'connecting' | 'waiting' | 'reading';

const CONNECT_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name lookup failed',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  UND_ERR_SOCKET: 'connection reset',
  ETIMEDOUT: 'connect timed out',
  UND_ERR_CONNECT_TIMEOUT: 'connect timed out',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EMFILE: 'the gateway has no free socket',
  ENFILE: 'the gateway has no free socket',
};

/**
 * What the HTTP client's `error` means. The words are made from the error's code: on a host with several addresses a
 * refused connection arrives as an AggregateError whose message is empty.
 */
export function describeFailure(error: unknown, stage: RequestStage): AgentFailure {
  const code = codeOf(error);
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') {
    return { code: 'draining', detail: 'this node is shutting down; call again' };
  }
  if (code === 'UND_ERR_INVALID_ARG') return { code: 'internal', detail: 'the request could not be built' };
  if (stage === 'connecting') return { code: 'agent_unreachable', detail: connectWords(code) };
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return { code: 'agent_bad_reply', detail: 'response headers too large' };
  // The parser's errors have a name but, in undici 7, not always a code.
  const isParserError = error instanceof Error && error.name === 'HTTPParserError';
  if (stage === 'waiting') {
    return { code: 'agent_bad_reply', detail: isParserError ? NOT_HTTP : waitingWords(error, code) };
  }
  const detail = isParserError ? 'the reply is cut off or not valid HTTP/1.1' : readingWords(code);
  return { code: 'stream_broken', detail };
}

function connectWords(code: string): string {
  const words = CONNECT_WORDS[code];
  if (words !== undefined) return words;
  if (code.includes('CERT') || code === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE') {
    return `TLS certificate not accepted (${code})`;
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS')) {
    return `TLS handshake failed (${code})`;
  }
  return code === '' ? 'connection failed' : `connection failed (${code})`;
}

const NOT_HTTP = 'not valid HTTP/1.1';

/** What undici's own words stand for when it closes the connection because of what the agent's headers say. */
const REFUSED_WORDS: Readonly<Record<string, string>> = {
  'bad response': 'agent answered 100 Continue, which nobody asked for',
  'bad upgrade': 'agent switched protocols, which nobody asked for',
};

function waitingWords(error: unknown, code: string): string {
  // Before there are headers this is two lengths that contradict each other, and not a body of another length.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return NOT_HTTP;
  const words = code === 'UND_ERR_SOCKET' && error instanceof Error ? REFUSED_WORDS[error.message] : undefined;
  return words ?? 'connection closed before the reply';
}

function readingWords(code: string): string {
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'the reply does not have the length its header says';
  return 'connection closed before the end of the reply';
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return codeOf(error.cause);
}
