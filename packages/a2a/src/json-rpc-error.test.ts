import { ERROR_CODES } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import { describe, expect, test } from 'vitest';
import { describeJsonRpcError, encodeJsonRpcError } from './json-rpc-error.js';
import type { JsonRpcErrorInput } from './json-rpc-error.js';

/** Each code: its number for callers without a version or 0.3, for 1.0 callers, its words for detail `D`, its reason. */
const TABLE: Record<ErrorCode, readonly [number, number, string, string]> = {
  parse_error: [-32700, -32700, 'parse error: D', 'PARSE_ERROR'],
  invalid_argument: [-32600, -32600, 'invalid request: D', 'INVALID_REQUEST'],
  unauthenticated: [-32603, -32603, 'D', 'UNAUTHENTICATED'],
  permission_denied: [-32603, -32603, 'forbidden: D', 'FORBIDDEN'],
  agent_not_found: [-32002, -32603, 'agent not found: D', 'AGENT_NOT_FOUND'],
  agent_limit_reached: [-32603, -32603, 'internal error: D', 'AGENT_LIMIT_REACHED'],
  rate_limited: [-32603, -32603, 'internal error: D', 'RATE_LIMITED'],
  concurrency_exceeded: [-32603, -32603, 'internal error: concurrency limit exceeded', 'CONCURRENCY_EXCEEDED'],
  deadline_exceeded: [-32001, -32603, 'agent timeout: D', 'AGENT_TIMEOUT'],
  agent_unreachable: [-32603, -32603, 'internal error: agent unreachable: D', 'AGENT_UNREACHABLE'],
  agent_http_error: [-32603, -32603, 'internal error: D', 'AGENT_HTTP_ERROR'],
  agent_bad_reply: [-32603, -32603, 'internal error: bad reply from agent: D', 'AGENT_BAD_REPLY'],
  response_too_large: [-32603, -32603, 'internal error: response too large: D', 'RESPONSE_TOO_LARGE'],
  request_too_large: [-32600, -32600, 'invalid request: request too large: D', 'REQUEST_TOO_LARGE'],
  version_not_supported: [-32009, -32009, 'version not supported: D', 'VERSION_NOT_SUPPORTED'],
  unsupported_operation: [-32004, -32004, 'unsupported operation: D', 'UNSUPPORTED_OPERATION'],
  no_dispatcher: [-32603, -32603, 'internal error: D', 'NO_DISPATCHER'],
  node_lost: [-32603, -32603, 'internal error: D', 'NODE_LOST'],
  stream_broken: [-32603, -32603, 'internal error: stream broken: D', 'STREAM_BROKEN'],
  bus_unavailable: [-32603, -32603, 'internal error: D', 'BUS_UNAVAILABLE'],
  store_unavailable: [-32603, -32603, 'internal error: D', 'STORE_UNAVAILABLE'],
  draining: [-32603, -32603, 'internal error: D', 'DRAINING'],
  cancelled: [-32603, -32603, 'internal error: D', 'CANCELLED'],
  internal: [-32603, -32603, 'internal error', 'INTERNAL'],
};

function encode(input: Partial<JsonRpcErrorInput>): string {
  const defaults = { code: 'internal', idJson: undefined, detail: 'D', version: undefined } as const;
  return Buffer.from(encodeJsonRpcError({ ...defaults, ...input })).toString();
}

describe('an error of the gateway', () => {
  test.each(ERROR_CODES)('%s, to callers without a version and of 0.3', (code) => {
    const [legacy, , message] = TABLE[code];
    for (const version of [undefined, '0.3'] as const) {
      expect(encode({ code, version, idJson: '7' })).toBe(
        `{"jsonrpc":"2.0","id":7,"error":${JSON.stringify({ code: legacy, message })}}`,
      );
      expect(describeJsonRpcError({ code, detail: 'D', version })).toEqual({ code: legacy, message });
    }
  });

  test.each(ERROR_CODES)('%s, to callers of 1.0', (code) => {
    const [, v1, message, reason] = TABLE[code];
    const isProtocols = code === 'version_not_supported' || code === 'unsupported_operation';
    expect(JSON.parse(encode({ code, version: '1.0', idJson: '"a"', traceId: 'abc' }))).toEqual({
      jsonrpc: '2.0',
      id: 'a',
      error: {
        code: v1,
        message,
        data: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason,
            domain: isProtocols ? 'a2a-protocol.org' : 'patchbay',
            metadata: { traceId: 'abc' },
          },
        ],
      },
    });
  });

  test('never gives a 1.0 caller the numbers that mean TaskNotFound and TaskNotCancelable there', () => {
    for (const code of ERROR_CODES) expect([-32001, -32002]).not.toContain(TABLE[code][1]);
  });

  test.each([
    ['1', '1'],
    ['"1"', '"1"'],
    ['null', 'null'],
    ['1753000000000', '1753000000000'],
    [undefined, 'null'],
  ])('echoes the id %s as %s', (idJson, echoed) => {
    expect(encode({ idJson })).toContain(`"id":${echoed},`);
  });

  test('keeps what is behind an internal error to itself', () => {
    expect(encode({ code: 'internal', detail: 'password=hunter2' })).not.toContain('hunter2');
  });

  test('is valid JSON whatever the detail says', () => {
    const detail = '"quotes"\n\u0000 ☺ \ud800';
    expect(JSON.parse(encode({ code: 'agent_http_error', detail }))).toMatchObject({ error: { code: -32603 } });
  });

  // KubeMQ's clients look for these words.
  test.each<[ErrorCode, string, RegExp]>([
    ['deadline_exceeded', 'slow-01', /^agent timeout: slow-01$/],
    ['deadline_exceeded', 'agent answered HTTP 504', /timeout|504/],
    ['agent_unreachable', 'connection refused', /unreachable|refused|unavailable/],
    ['agent_http_error', 'agent unavailable (HTTP 503)', /unavailable|503/],
    ['response_too_large', 'over 10485760 bytes', /too large|response/],
    ['parse_error', 'invalid JSON', /^parse error: invalid JSON$/],
    ['invalid_argument', 'missing method field', /^invalid request: missing method field$/],
    ['invalid_argument', 'invalid jsonrpc version', /^invalid request: invalid jsonrpc version$/],
    ['agent_not_found', 'ghost', /^agent not found: ghost$/],
  ])('%s with %j reads as clients expect', (code, detail, words) => {
    expect(describeJsonRpcError({ code, detail, version: undefined }).message).toMatch(words);
  });
});
