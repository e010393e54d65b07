import { PatchbayError } from '@patchbay/core';
import type { Headers } from './bus.js';

/** Headers of a message that has none. */
export const NO_HEADERS: Headers = Object.freeze({});

/**
 * Refuses header values that could end their line and start another. Hot path: two searches a value, no copies.
 *
 * @throws PatchbayError invalid_argument
 */
export function assertHeaders(headers: Headers): void {
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    if (hasLineBreak(value)) throw lineBreakError(name);
  }
}

/** Whether a value would end its line. */
export function hasLineBreak(value: string): boolean {
  return value.includes('\n') || value.includes('\r');
}

/** The refusal of header `name`. */
export function lineBreakError(name: string): PatchbayError {
  return new PatchbayError(
    'invalid_argument',
    `header ${JSON.stringify(name)} has a line break in its value; remove it`,
  );
}
