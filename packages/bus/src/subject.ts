import { PatchbayError } from '@patchbay/core';

// White space or a line break in a subject would be read as protocol by NATS, so both adapters refuse it.
const SUBJECT = /^[^\s.*>]+(?:\.[^\s.*>]+)*$/;
const PATTERN = /^(?:[^\s.*>]+|\*)(?:\.(?:[^\s.*>]+|\*))*(?:\.>)?$|^>$/;

/**
 * Checks a subject to send to: tokens joined by dots, none of them empty or a wildcard.
 *
 * @throws PatchbayError invalid_argument
 */
export function assertSubject(subject: string): void {
  if (SUBJECT.test(subject)) return;
  throw new PatchbayError(
    'invalid_argument',
    `a subject must be tokens joined by ".", without spaces, "*" or ">"; got ${JSON.stringify(subject)}`,
  );
}

/**
 * Checks a subject to subscribe to: as {@link assertSubject}, with `*` for one token and a last `>` for the rest.
 *
 * @throws PatchbayError invalid_argument
 */
export function assertSubjectPattern(pattern: string): void {
  if (PATTERN.test(pattern)) return;
  throw new PatchbayError(
    'invalid_argument',
    `a subscription must be tokens joined by ".", where "*" is one token and a last ">" the rest; got ${JSON.stringify(pattern)}`,
  );
}

/** Whether a subscription's subject has a wildcard. */
export function isWildcard(pattern: string): boolean {
  return pattern === '>' || pattern.endsWith('.>') || pattern === '*' || /(?:^|\.)\*(?:\.|$)/.test(pattern);
}
