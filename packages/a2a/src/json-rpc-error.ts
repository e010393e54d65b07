import type { ErrorCode } from '@patchbay/core';
import type { ProtocolVersion } from './protocol-version.js';

/** How one code looks in a JSON-RPC error. */
interface JsonRpcForm {
  /** Number for callers that send no `A2A-Version` or 0.3: KubeMQ's table. */
  readonly legacy: number;
  /** Number for 1.0 callers, to whom -32001 and -32002 mean something else (TaskNotFound, TaskNotCancelable). */
  readonly v1: number;
  /** `reason` of the ErrorInfo that 1.0 callers get. */
  readonly reason: string;
  /** What stands before the message. */
  readonly prefix: string;
}

const FORMS: Record<ErrorCode, JsonRpcForm> = {
  parse_error: form(-32700, -32700, 'PARSE_ERROR', 'parse error: '),
  invalid_argument: form(-32600, -32600, 'INVALID_REQUEST', 'invalid request: '),
  unauthenticated: form(-32603, -32603, 'UNAUTHENTICATED', ''),
  permission_denied: form(-32603, -32603, 'FORBIDDEN', 'forbidden: '),
  agent_not_found: form(-32002, -32603, 'AGENT_NOT_FOUND', 'agent not found: '),
  agent_limit_reached: form(-32603, -32603, 'AGENT_LIMIT_REACHED', 'internal error: '),
  rate_limited: form(-32603, -32603, 'RATE_LIMITED', 'internal error: '),
  concurrency_exceeded: form(-32603, -32603, 'CONCURRENCY_EXCEEDED', 'internal error: concurrency limit exceeded'),
  deadline_exceeded: form(-32001, -32603, 'AGENT_TIMEOUT', 'agent timeout: '),
  agent_unreachable: form(-32603, -32603, 'AGENT_UNREACHABLE', 'internal error: agent unreachable: '),
  agent_http_error: form(-32603, -32603, 'AGENT_HTTP_ERROR', 'internal error: '),
  agent_bad_reply: form(-32603, -32603, 'AGENT_BAD_REPLY', 'internal error: bad reply from agent: '),
  response_too_large: form(-32603, -32603, 'RESPONSE_TOO_LARGE', 'internal error: response too large: '),
  request_too_large: form(-32600, -32600, 'REQUEST_TOO_LARGE', 'invalid request: request too large: '),
  version_not_supported: form(-32009, -32009, 'VERSION_NOT_SUPPORTED', 'version not supported: '),
  unsupported_operation: form(-32004, -32004, 'UNSUPPORTED_OPERATION', 'unsupported operation: '),
  no_dispatcher: form(-32603, -32603, 'NO_DISPATCHER', 'internal error: '),
  node_lost: form(-32603, -32603, 'NODE_LOST', 'internal error: '),
  stream_broken: form(-32603, -32603, 'STREAM_BROKEN', 'internal error: stream broken: '),
  bus_unavailable: form(-32603, -32603, 'BUS_UNAVAILABLE', 'internal error: '),
  store_unavailable: form(-32603, -32603, 'STORE_UNAVAILABLE', 'internal error: '),
  draining: form(-32603, -32603, 'DRAINING', 'internal error: '),
  cancelled: form(-32603, -32603, 'CANCELLED', 'internal error: '),
  internal: form(-32603, -32603, 'INTERNAL', 'internal error'),
};

/** A gateway's own error on a JSON-RPC call. */
export interface JsonRpcErrorInput {
  readonly code: ErrorCode;
  /** The request's id as JSON text; `null` when it has none. */
  readonly idJson: string | undefined;
  /** What happened, without the code's own words; for agents not found and timeouts the agent's id. */
  readonly detail: string;
  /** What the caller speaks. */
  readonly version: ProtocolVersion;
  /** For 1.0 callers, in the ErrorInfo. */
  readonly traceId?: string;
}

/** The number and the message of a gateway's own error, for callers that do not take an envelope. */
export function describeJsonRpcError(input: Pick<JsonRpcErrorInput, 'code' | 'detail' | 'version'>): {
  code: number;
  message: string;
} {
  const entry = FORMS[input.code];
  return { code: input.version === '1.0' ? entry.v1 : entry.legacy, message: wordOf(input.code, input.detail) };
}

/** Writes a gateway's own error as a JSON-RPC response. The agent's own errors are relayed and never come here. */
export function encodeJsonRpcError(input: JsonRpcErrorInput): Uint8Array {
  const { code, message } = describeJsonRpcError(input);
  const error = input.version === '1.0' ? { code, message, data: [errorInfo(input)] } : { code, message };
  return Buffer.from(`{"jsonrpc":"2.0","id":${input.idJson ?? 'null'},"error":${JSON.stringify(error)}}`);
}

/** Source: A2A 1.0 section 9.5 and google.rpc.ErrorInfo. */
function errorInfo(input: JsonRpcErrorInput): Record<string, unknown> {
  // -32009 and -32004 are the protocol's own errors and carry its domain; the rest is ours.
  const isProtocols = input.code === 'version_not_supported' || input.code === 'unsupported_operation';
  return {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: FORMS[input.code].reason,
    domain: isProtocols ? 'a2a-protocol.org' : 'patchbay',
    metadata: input.traceId === undefined ? {} : { traceId: input.traceId },
  };
}

/** Codes whose words are complete; what is behind them is for the log. */
const COMPLETE: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['concurrency_exceeded', 'internal']);

function wordOf(code: ErrorCode, detail: string): string {
  const { prefix } = FORMS[code];
  return COMPLETE.has(code) ? prefix : prefix + detail;
}

function form(legacy: number, v1: number, reason: string, prefix: string): JsonRpcForm {
  return { legacy, v1, reason, prefix };
}
