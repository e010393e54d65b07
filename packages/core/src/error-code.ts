/**
 * Everything that can go wrong, as one closed vocabulary. Each front owns a table `Record<ErrorCode, …>` from
 * these to its own wire form, so a new code does not compile until every front has a word for it.
 */
export const ERROR_CODES = [
  'parse_error',
  'invalid_argument',
  'unauthenticated',
  'permission_denied',
  'agent_not_found',
  'agent_limit_reached',
  'rate_limited',
  'concurrency_exceeded',
  'deadline_exceeded',
  'agent_unreachable',
  'agent_http_error',
  'agent_bad_reply',
  'response_too_large',
  'request_too_large',
  'version_not_supported',
  'unsupported_operation',
  'no_dispatcher',
  'node_lost',
  'stream_broken',
  'bus_unavailable',
  'store_unavailable',
  'draining',
  'cancelled',
  'internal',
] as const;

/** One of {@link ERROR_CODES}. */
export type ErrorCode = (typeof ERROR_CODES)[number];

const KNOWN: ReadonlySet<string> = new Set(ERROR_CODES);

/** Whether `text`, as it came over the wire, is one of {@link ERROR_CODES}. */
export function isErrorCode(text: string): text is ErrorCode {
  return KNOWN.has(text);
}
