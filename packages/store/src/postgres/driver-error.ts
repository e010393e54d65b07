import { PatchbayError } from '@patchbay/core';

/**
 * SQLSTATE classes that asking again does not cure: our statement or its data is wrong, not the database away.
 * 22 data exception, 23 constraint, 42 syntax or missing object, 54 program limit exceeded.
 */
const OUR_FAULT = new Set(['22', '23', '42', '54']);
const INSUFFICIENT_PRIVILEGE = '42501';

/** The SQLSTATE of an error that the server itself answered with; undefined for everything else. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Turns what the driver threw into the store's error: `store_unavailable` when the database could not be asked. */
export function toStoreError(error: unknown): PatchbayError {
  if (error instanceof PatchbayError) return error;
  const state = sqlStateOf(error);
  if (state !== undefined && OUR_FAULT.has(state.slice(0, 2)) && state !== INSUFFICIENT_PRIVILEGE) {
    return new PatchbayError('internal', `the database refused a statement (SQLSTATE ${state})`, { cause: error });
  }
  const reason = reasonOf(error);
  return new PatchbayError('store_unavailable', `the database cannot be asked: ${reason}`, {
    cause: error,
    ...(state === undefined ? {} : { details: { sqlState: state } }),
  });
}

/** The error for a COMMIT that was sent and not answered: the transaction may stand or not. */
export function unknownOutcome(cause: unknown): PatchbayError {
  return new PatchbayError(
    'store_unavailable',
    `the connection to the database was lost during COMMIT, so the outcome is unknown: ${reasonOf(cause)}`,
    { cause, details: { outcome: 'unknown' } },
  );
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; '); // "localhost" that refuses on ::1 and 127.0.0.1
  return error instanceof Error && error.message !== '' ? error.message : String(error);
}
