import { randomFillSync } from 'node:crypto';

/** Where a call stands in its trace, as the W3C headers carry it. Passed as an argument, never ambient. */
export interface TraceContext {
  /** `00-<32 hex>-<16 hex>-<2 hex>`. */
  readonly traceparent: string;
  readonly tracestate?: string;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Longest `tracestate` that is passed on (W3C asks for at least 512). */
const MAX_TRACESTATE_LENGTH = 1024;

// One system call and one conversion for 100 contexts instead of one for each: this is the hot path.
const CONTEXT_DIGITS = 48;
const pool = Buffer.alloc(2_400);
let digits = '';
let next = 0;

/** The caller's context when its header is valid, else a new, unsampled one. */
export function readTraceContext(traceparent: string | undefined, tracestate: string | undefined): TraceContext {
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return newTraceContext();
  const isStateUsable = tracestate !== undefined && tracestate !== '' && tracestate.length <= MAX_TRACESTATE_LENGTH;
  return isStateUsable ? { traceparent, tracestate } : { traceparent };
}

/** A new trace, not sampled. */
export function newTraceContext(): TraceContext {
  if (next === digits.length) {
    digits = randomFillSync(pool).toString('hex');
    next = 0;
  }
  const traceId = digits.slice(next, next + 32);
  const spanId = digits.slice(next + 32, next + CONTEXT_DIGITS);
  next += CONTEXT_DIGITS;
  return { traceparent: `00-${traceId}-${spanId}-00` };
}

/** The 32 hex digits that name the trace. */
export function traceIdOf(context: TraceContext): string {
  return context.traceparent.slice(3, 35);
}

/** Whether somebody upstream decided that this trace is recorded. */
export function isSampled(context: TraceContext): boolean {
  // The lowest bit of the last hex digit; hot path, so no text is cut out and parsed. Letters begin at an odd code with ten.
  const code = context.traceparent.charCodeAt(54);
  const lowest = code & 1;
  return code < 0x61 ? lowest === 1 : lowest === 0 && code <= 0x66;
}
