import { PatchbayError } from '@patchbay/core';

/**
 * What the command line says of an error, for people: one line for each thing that is wrong and what to do; undefined
 * for what nobody foresaw, which is a bug and deserves its stack.
 */
export function explainError(error: unknown): readonly string[] | undefined {
  if (error instanceof PatchbayError && error.code !== 'internal') return error.message.split('\n');
  return undefined;
}
