import { describeJsonRpcError, encodeJsonRpcError } from '@patchbay/a2a';
import type { ProtocolVersion } from '@patchbay/a2a';
import { RemoteError } from '@patchbay/bus';
import { asPatchbayError, PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';

/** How an error of a call is worded. */
export interface ErrorWording {
  readonly agentId: string;
  /** The request's id as JSON text. */
  readonly idJson: string | undefined;
  readonly version: ProtocolVersion;
  readonly traceId: string;
}

/** An error of a call as the caller gets it. */
export interface CallError {
  readonly code: ErrorCode;
  /** The JSON-RPC response. */
  readonly body: Uint8Array;
}

/** Puts an error into the caller's words. What dispatch has worded already is relayed as it is. */
export function wordError(error: unknown, wording: ErrorWording): CallError {
  const known = asPatchbayError(error);
  if (known instanceof RemoteError && known.body.length > 0) return { code: known.code, body: known.body };
  const { agentId, ...rest } = wording;
  return {
    code: known.code,
    body: encodeJsonRpcError({ ...rest, code: known.code, detail: detailOf(known, agentId) }),
  };
}

/** Number and message of an error, for streams whose events carry those instead of an envelope. */
export function describeError(error: unknown, wording: ErrorWording): { code: number; message: string } {
  const known = asPatchbayError(error);
  if (known instanceof RemoteError && known.body.length > 0) {
    const worded = readWorded(known.body);
    if (worded !== undefined) return worded;
  }
  return describeJsonRpcError({ code: known.code, detail: detailOf(known, wording.agentId), version: wording.version });
}

/** What stands behind the code's own words. */
function detailOf(error: PatchbayError, agentId: string): string {
  return error.code === 'agent_not_found' || error.code === 'deadline_exceeded' ? agentId : error.message;
}

/** Number and message out of an envelope of dispatch. */
function readWorded(body: Uint8Array): { code: number; message: string } | undefined {
  try {
    const { error } = JSON.parse(Buffer.from(body).toString()) as { error?: { code?: unknown; message?: unknown } };
    return typeof error?.code === 'number' && typeof error.message === 'string'
      ? { code: error.code, message: error.message }
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * HTTP status of an error for callers that name their `A2A-Version`. All others get 200 for everything: that is
 * KubeMQ's contract, and its clients give up on any other status before they read the body.
 */
const VERSIONED_STATUS: Record<ErrorCode, number> = {
  parse_error: 200,
  invalid_argument: 200,
  unauthenticated: 401,
  permission_denied: 403,
  agent_not_found: 200,
  agent_limit_reached: 200,
  rate_limited: 429,
  concurrency_exceeded: 429,
  deadline_exceeded: 200,
  agent_unreachable: 200,
  agent_http_error: 200,
  agent_bad_reply: 200,
  response_too_large: 200,
  request_too_large: 413,
  version_not_supported: 200,
  unsupported_operation: 200,
  no_dispatcher: 503,
  node_lost: 200,
  stream_broken: 200,
  bus_unavailable: 503,
  store_unavailable: 503,
  draining: 503,
  cancelled: 200,
  internal: 200,
};

/** HTTP status of an error on a call. */
export function statusOf(code: ErrorCode, hasVersion: boolean): number {
  return hasVersion ? VERSIONED_STATUS[code] : 200;
}
