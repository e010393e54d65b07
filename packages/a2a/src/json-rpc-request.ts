import { isUtf8 } from 'node:buffer';
import { inspectJson } from '@patchbay/core';
import { topLevelScalar } from './top-level-scalar.js';

/** What the gateway needs to know of a JSON-RPC request; the body itself travels on untouched. */
export type JsonRpcRequest =
  | {
      readonly ok: true;
      /** The id as JSON text, to be echoed; undefined for a notification. */
      readonly idJson: string | undefined;
      readonly method: string;
      /** `params.configuration.timeout` in milliseconds, when it is a number over 0. */
      readonly timeoutMs: number | undefined;
    }
  | {
      readonly ok: false;
      readonly code: 'parse_error' | 'invalid_argument';
      readonly idJson: string;
      /** What was wrong, to be put behind the code's own words. */
      readonly detail: string;
    };

/** Deepest nesting of a call's JSON. Agents' parsers recurse; no real message comes near. */
export const MAX_CALL_DEPTH = 256;

// A byte order mark stays and makes the text no JSON: it would go on to the agent, whose parser may refuse it.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Checks a JSON-RPC 2.0 request and takes out what routing needs. Hot path: the only parse of a call's body.
 * Source: JSON-RPC 2.0 section 4; the order of the checks is KubeMQ's.
 */
export function readJsonRpcRequest(body: Uint8Array): JsonRpcRequest {
  if (!isUtf8(body)) return refuse('parse_error', 'null', 'invalid JSON');
  const shape = inspectJson(body, MAX_CALL_DEPTH);
  if (shape.depth > MAX_CALL_DEPTH) {
    return refuse('parse_error', 'null', `invalid JSON: nested deeper than ${MAX_CALL_DEPTH} levels`);
  }
  const text = decoder.decode(body);
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch {
    return refuse('parse_error', 'null', 'invalid JSON');
  }
  if (Array.isArray(request)) return refuse('invalid_argument', 'null', 'batches are not supported; send one object');
  if (!isObject(request)) return refuse('invalid_argument', 'null', 'the body is not a JSON object');
  if (shape.duplicateMember !== undefined) {
    return refuse('invalid_argument', 'null', `member "${shape.duplicateMember}" is given twice`);
  }
  const { id } = request;
  const hasLegalId = id === undefined || id === null || typeof id === 'string' || typeof id === 'number';
  if (!hasLegalId) return refuse('invalid_argument', 'null', 'id is not a string, a number or null');
  const idJson = id === undefined ? undefined : writeId(id, text);
  if (request['jsonrpc'] !== '2.0') return refuse('invalid_argument', idJson ?? 'null', 'invalid jsonrpc version');
  const { method } = request;
  if (typeof method !== 'string' || method === '') {
    return refuse('invalid_argument', idJson ?? 'null', 'missing method field');
  }
  return { ok: true, idJson, method, timeoutMs: readTimeoutMs(request['params']) };
}

/** The id as it is to be echoed. A number that JavaScript cannot hold exactly is taken from the text. */
function writeId(id: string | number | null, text: string): string {
  const isExact = typeof id !== 'number' || (Number.isSafeInteger(id) && !Object.is(id, -0));
  return isExact ? JSON.stringify(id) : (topLevelScalar(text, 'id') ?? JSON.stringify(id));
}

/** The caller's own time limit: seconds, fractions honoured; anything that is not a number over 0 counts as absent. */
function readTimeoutMs(params: unknown): number | undefined {
  if (!isObject(params) || !isObject(params['configuration'])) return undefined;
  const { timeout } = params['configuration'];
  return typeof timeout === 'number' && Number.isFinite(timeout) && timeout > 0 ? timeout * 1000 : undefined;
}

function refuse(code: 'parse_error' | 'invalid_argument', idJson: string, detail: string): JsonRpcRequest {
  return { ok: false, code, idJson, detail };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
