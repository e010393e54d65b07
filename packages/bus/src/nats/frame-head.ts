import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Headers } from '../bus.js';
import { BusHeader } from '../bus-header.js';
import { hasLineBreak, lineBreakError } from '../headers.js';

/** What a frame is for. */
export type FrameKind = 'accept' | 'part' | 'data' | 'end' | 'error' | 'credit' | 'cancel' | 'alive';

const KINDS: ReadonlySet<string> = new Set(['accept', 'part', 'data', 'end', 'error', 'credit', 'cancel', 'alive']);

export function isFrameKind(value: string): value is FrameKind {
  return KINDS.has(value);
}

/** Headers that the adapter itself writes and reads; applications neither set nor see them. */
export const CONTROL_HEADERS: ReadonlySet<string> = new Set([
  BusHeader.frame,
  BusHeader.sequence,
  BusHeader.credit,
  BusHeader.accept,
  BusHeader.wants,
  BusHeader.sent,
  BusHeader.timeoutMs,
  BusHeader.error,
  BusHeader.errorMessage,
]);

// A name is looked at once. Clients choose the names of forwarded headers, so the memory is bounded.
const MAX_KNOWN_NAMES = 4_096;
const NAME = /^[!-9;-~]+$/;
const knownNames = new Map<string, boolean>();

/** Whether an application's header goes on the wire. @throws PatchbayError invalid_argument for what is no name */
function isCarried(name: string): boolean {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  if (!NAME.test(name)) {
    throw new PatchbayError(
      'invalid_argument',
      `a header name must be visible ASCII without ":"; got ${JSON.stringify(name)}`,
    );
  }
  const isCarriedName = !CONTROL_HEADERS.has(name);
  if (knownNames.size < MAX_KNOWN_NAMES) knownNames.set(name, isCarriedName);
  return isCarriedName;
}

/**
 * The head of a message: our control lines, then the application's headers in UTF-8. Hot path: one string, one
 * encoding; the client's own header class is several times slower.
 *
 * @throws PatchbayError invalid_argument for a name or value that cannot be carried
 */
export function encodeHead(control: string, headers: Headers | undefined): Buffer | undefined {
  let lines = control;
  if (headers !== undefined) {
    for (const name in headers) {
      const value = headers[name];
      if (value === undefined || !isCarried(name)) continue;
      if (hasLineBreak(value)) throw lineBreakError(name);
      lines += `${name}: ${value}\r\n`;
    }
  }
  return lines === '' ? undefined : Buffer.from(`NATS/1.0\r\n${lines}\r\n`);
}

/** Checks headers as {@link encodeHead} does. @throws PatchbayError invalid_argument */
export function assertCarriable(headers: Headers): void {
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && isCarried(name) && hasLineBreak(value)) throw lineBreakError(name);
  }
}

/** One control line. */
export function controlLine(name: string, value: string | number): string {
  return `${name}: ${value}\r\n`;
}

/** The line that says what a frame is. */
export function frameLine(kind: FrameKind): string {
  return `${BusHeader.frame}: ${kind}\r\n`;
}

const MAX_ERROR_MESSAGE_LENGTH = 1_024;

/** The lines of an error; its message is made to fit on one. */
export function errorLines(code: ErrorCode, message: string): string {
  const line = message.replaceAll(/[\r\n]+/g, ' ').slice(0, MAX_ERROR_MESSAGE_LENGTH);
  return `${frameLine('error')}${BusHeader.error}: ${code}\r\n${BusHeader.errorMessage}: ${line}\r\n`;
}
