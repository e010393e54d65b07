import { isUtf8 } from 'node:buffer';
import { scanJson } from '@patchbay/core';
import type { JsonMember } from '@patchbay/core';
import { MemberNames } from './member-names.js';

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

/**
 * Checks a JSON-RPC 2.0 request and takes out what routing needs. Hot path: the one look at a call's body, which builds
 * nothing but the few texts that are asked for.
 * Source: JSON-RPC 2.0 section 4; the order of the checks is KubeMQ's.
 */
export function readJsonRpcRequest(body: Uint8Array): JsonRpcRequest {
  if (!isUtf8(body)) return refuse('parse_error', 'null', 'invalid JSON');
  const members: JsonMember[] = [];
  const kind = scanJson(body, MAX_CALL_DEPTH, members);
  if (kind === 'too_deep') {
    return refuse('parse_error', 'null', `invalid JSON: nested deeper than ${MAX_CALL_DEPTH} levels`);
  }
  if (kind === 'invalid') return refuse('parse_error', 'null', 'invalid JSON');
  if (kind === 'array') return refuse('invalid_argument', 'null', 'batches are not supported; send one object');
  if (kind === 'scalar') return refuse('invalid_argument', 'null', 'the body is not a JSON object');
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const names = new MemberNames(bytes, members);
  const duplicate = names.givenTwice();
  if (duplicate !== undefined) return refuse('invalid_argument', 'null', `member "${duplicate}" is given twice`);
  const id = textOf(bytes, names.find(ID));
  if (id !== undefined && NO_SCALAR_ID.test(id)) {
    return refuse('invalid_argument', 'null', 'id is not a string, a number or null');
  }
  const idJson = id === undefined ? undefined : writeId(id);
  if (stringOf(textOf(bytes, names.find(JSONRPC))) !== '2.0') {
    return refuse('invalid_argument', idJson ?? 'null', 'invalid jsonrpc version');
  }
  const method = stringOf(textOf(bytes, names.find(METHOD)));
  if (method === undefined || method === '') {
    return refuse('invalid_argument', idJson ?? 'null', 'missing method field');
  }
  return { ok: true, idJson, method, timeoutMs: readTimeoutMs(bytes, names.find(PARAMS)) };
}

const ID = Buffer.from('id');
const JSONRPC = Buffer.from('jsonrpc');
const METHOD = Buffer.from('method');
const PARAMS = Buffer.from('params');

/** A value as it stands in the body. */
function textOf(bytes: Buffer, member: JsonMember | undefined): string | undefined {
  return member === undefined ? undefined : bytes.toString('utf8', member.start, member.end);
}

/** What a string says; undefined when the value is none. */
function stringOf(json: string | undefined): string | undefined {
  if (json === undefined || !json.startsWith('"')) return undefined;
  return json.includes('\\') ? String(JSON.parse(json)) : json.slice(1, -1);
}

const NO_SCALAR_ID = /^[{[tf]/;

/** The id as it is to be echoed. A number that JavaScript cannot hold exactly stays as it was sent. */
function writeId(json: string): string {
  if (json.startsWith('"')) return json.includes('\\') ? JSON.stringify(JSON.parse(json)) : json;
  if (json === 'null') return json;
  const value = Number(json);
  return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : json;
}

const TIMEOUT = Buffer.from('timeout"');
const BACKSLASH = 0x5c;

/**
 * The caller's own time limit: seconds, fractions honoured; anything that is not a number over 0 counts as absent.
 * Only parameters in which the name can be are parsed; with a backslash it may be written in another way.
 */
function readTimeoutMs(bytes: Buffer, member: JsonMember | undefined): number | undefined {
  if (member === undefined) return undefined;
  const { start, end } = member;
  if (!mayHaveTimeout(bytes, start, end)) return undefined;
  const params: unknown = JSON.parse(bytes.toString('utf8', start, end));
  if (!isObject(params) || !isObject(params['configuration'])) return undefined;
  const { timeout } = params['configuration'];
  return typeof timeout === 'number' && Number.isFinite(timeout) && timeout > 0 ? timeout * 1000 : undefined;
}

/** Up to here a loop is quicker than two searches, whose calls cost more than what they search. */
const SHORT = 512;

function mayHaveTimeout(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > SHORT) {
    const params = bytes.subarray(start, end);
    return params.includes(TIMEOUT) || params.includes(BACKSLASH);
  }
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at];
    if (byte === BACKSLASH || (byte === 0x74 && isAt(bytes, at, TIMEOUT))) return true;
  }
  return false;
}

function isAt(bytes: Buffer, from: number, word: Buffer): boolean {
  for (let at = 0; at < word.length; at += 1) if (bytes[from + at] !== word[at]) return false;
  return true;
}

function refuse(code: 'parse_error' | 'invalid_argument', idJson: string, detail: string): JsonRpcRequest {
  return { ok: false, code, idJson, detail };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
