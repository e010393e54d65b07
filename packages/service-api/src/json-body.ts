import { PatchbayError } from '@patchbay/core';

const decoder = new TextDecoder();

/** A message body of a service: JSON in UTF-8. */
export function encodeBody(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/**
 * Reads a body written by {@link encodeBody} of the same or a neighbouring version of this program. It is our own
 * traffic, so only its syntax is checked.
 */
export function decodeBody<T>(body: Uint8Array): T {
  try {
    return JSON.parse(decoder.decode(body)) as T;
  } catch (cause) {
    throw new PatchbayError('parse_error', 'a service answered with something that is not JSON', { cause });
  }
}
