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

// One system call for 100 contexts instead of one for each: this is the hot path.
const pool = Buffer.alloc(2_400);
let next = pool.length;

/** The caller's context when its header is valid, else a new, unsampled one. */
export function readTraceContext(traceparent: string | undefined, tracestate: string | undefined): TraceContext {
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return newTraceContext();
  const isStateUsable = tracestate !== undefined && tracestate !== '' && tracestate.length <= MAX_TRACESTATE_LENGTH;
  return isStateUsable ? { traceparent, tracestate } : { traceparent };
}

/** A new trace, not sampled. */
export function newTraceContext(): TraceContext {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const traceId = pool.toString('hex', next, next + 16);
  const spanId = pool.toString('hex', next + 16, next + 24);
  next += 24;
  return { traceparent: `00-${traceId}-${spanId}-00` };
}

/** The 32 hex digits that name the trace. */
export function traceIdOf(context: TraceContext): string {
  return context.traceparent.slice(3, 35);
}

/** Whether somebody upstream decided that this trace is recorded. */
export function isSampled(context: TraceContext): boolean {
  return (Number.parseInt(context.traceparent.slice(53), 16) & 1) === 1;
}
