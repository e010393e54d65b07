import { PatchbayError } from '@patchbay/core';

/** Why nothing more can be written to an exchange that was answered. */
export function endedError(): PatchbayError {
  return new PatchbayError('cancelled', 'the exchange has ended; nothing more can be written to it');
}

/**
 * A promise that has failed, for a responder that may not be waiting: many write without it, and then nobody's
 * rejection must not end the process.
 */
export function rejected(reason: unknown): Promise<never> {
  const failed = Promise.reject(reason);
  failed.catch(() => undefined);
  return failed;
}
