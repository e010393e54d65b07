import { asPatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';

/** HTTP status of an error on the registry's routes. */
const STATUS: Record<ErrorCode, number> = {
  parse_error: 400,
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  agent_not_found: 404,
  agent_limit_reached: 409,
  rate_limited: 429,
  concurrency_exceeded: 429,
  deadline_exceeded: 503,
  agent_unreachable: 502,
  agent_http_error: 502,
  agent_bad_reply: 502,
  response_too_large: 502,
  request_too_large: 413,
  version_not_supported: 400,
  unsupported_operation: 400,
  no_dispatcher: 503,
  node_lost: 503,
  stream_broken: 503,
  bus_unavailable: 503,
  store_unavailable: 503,
  draining: 503,
  cancelled: 503,
  internal: 500,
};

/** Texts that clients print or compare, and those that would tell of our insides; every other error has its own. */
const TEXT: Partial<Record<ErrorCode, string>> = {
  agent_not_found: 'agent not found',
  no_dispatcher: 'the registry does not answer at the moment; try again',
  node_lost: 'the registry stopped answering; try again, registrations can be repeated safely',
  deadline_exceeded: 'the registry did not answer in time; try again, registrations can be repeated safely',
  internal: 'internal error',
};

/** An error on the registry's routes: `{"error": …}` with its status. */
export interface RegistryErrorReply {
  readonly code: ErrorCode;
  readonly status: number;
  readonly body: { readonly error: string };
}

/** Puts an error into the registry's words. */
export function describeRegistryError(error: unknown): RegistryErrorReply {
  const { code, message } = asPatchbayError(error);
  return { code, status: STATUS[code], body: { error: TEXT[code] ?? message } };
}
