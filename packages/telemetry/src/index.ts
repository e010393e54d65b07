export { startCallSpan } from './call-span.js';
export type { CallSpan, CallSpanKind } from './call-span.js';
export { createLogger, silentLogger } from './logger.js';
export type { Logger } from './logger.js';
export { NodeMetrics } from './node-metrics.js';
export type { CallKind } from './call-durations.js';
export { isSampled, newTraceContext, readTraceContext, traceIdOf } from './trace-context.js';
export type { TraceContext } from './trace-context.js';
