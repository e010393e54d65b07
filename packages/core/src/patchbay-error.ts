import type { ErrorCode } from './error-code.js';

/** What a {@link PatchbayError} may carry beside its code and message. */
export interface PatchbayErrorOptions {
  /** Whether the same call may succeed later. Default: as the code says (`RETRYABLE`). */
  readonly retryable?: boolean;
  /** Facts for logs and for rich error forms; never payloads or credentials. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

const RETRYABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'rate_limited',
  'concurrency_exceeded',
  'no_dispatcher',
  'bus_unavailable',
  'store_unavailable',
  'draining',
]);

/**
 * The one base class of our errors: `code` for programs, `message` for people (what was wrong and what to do).
 * Drivers' errors are turned into it in their adapter.
 */
export class PatchbayError extends Error {
  override readonly name: string = 'PatchbayError';
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: PatchbayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? RETRYABLE.has(code);
    this.details = options.details ?? {};
  }
}

/**
 * `error` as a {@link PatchbayError}: itself when it is one, else an `internal` that keeps it as `cause`.
 * The cause is for the log; what is sent to a caller says only `internal error`.
 */
export function asPatchbayError(error: unknown): PatchbayError {
  return error instanceof PatchbayError ? error : new PatchbayError('internal', 'internal error', { cause: error });
}
