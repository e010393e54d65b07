import { isUtf8 } from 'node:buffer';
import { scanJson } from '@patchbay/core';

/** Larger replies are judged by their ends: looking at each byte would cost as much as the call. */
const MAX_SCANNED_BYTES = 1_048_576;
const MAX_SCANNED_DEPTH = 1_000;

/**
 * What is wrong with `body` as a JSON-RPC reply, in words that name what came instead; undefined when it is a JSON
 * object. The content type is only used to name what is not JSON: agents label JSON as `text/plain` too.
 */
export function describeNonJson(body: Buffer, contentType: string | undefined): string | undefined {
  if (body.length === 0) return 'empty body';
  if (isJsonObject(body)) return undefined;
  const mediaType = mediaTypeOf(contentType);
  const start = body.toString('latin1', 0, 256).trimStart().toLowerCase();
  if (mediaType === 'text/html' || start.startsWith('<!doctype html') || start.startsWith('<html')) return 'HTML';
  if (start === '') return 'blank body';
  if (mediaType === '' || mediaType === 'application/json') return 'not a JSON object';
  return `not a JSON object but ${mediaType.slice(0, 100)}`;
}

/** The media type in a `Content-Type`, lower-case and without parameters; empty when there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function isJsonObject(body: Buffer): boolean {
  if (firstVisible(body) !== 0x7b || lastVisible(body) !== 0x7d) return false;
  if (body.length > MAX_SCANNED_BYTES) return true;
  if (!isUtf8(body)) return false;
  const kind = scanJson(body, MAX_SCANNED_DEPTH);
  // Nobody has set a limit to an agent's depth.
  return kind === 'too_deep' ? isParsable(body) : kind === 'object';
}

function isParsable(body: Buffer): boolean {
  try {
    JSON.parse(body.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}

function firstVisible(body: Buffer): number | undefined {
  let at = 0;
  while (at < body.length && isBlank(body[at])) at += 1;
  return body[at];
}

function lastVisible(body: Buffer): number | undefined {
  let at = body.length - 1;
  while (at >= 0 && isBlank(body[at])) at -= 1;
  return body[at];
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
