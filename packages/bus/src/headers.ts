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
    if (value.includes('\n') || value.includes('\r')) throw lineBreak(name);
  }
}

function lineBreak(name: string): PatchbayError {
  return new PatchbayError(
    'invalid_argument',
    `header ${JSON.stringify(name)} has a line break in its value; remove it`,
  );
}
