import { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Span } from '@opentelemetry/api';
import type { TraceContext } from './trace-context.js';
import { isSampled, traceIdOf } from './trace-context.js';

/** One step of a call. Ended exactly once. */
export interface CallSpan {
  /** What the next step is a child of, and what messages of this step carry. */
  readonly context: TraceContext;
  setAttributes(attributes: Attributes): void;
  /** Marks the step as failed, with the error's code. */
  fail(code: string, message: string): void;
  end(): void;
}

/** The side of the step, as OpenTelemetry names it. */
export type CallSpanKind = 'server' | 'client' | 'producer' | 'consumer' | 'internal';

const KINDS: Record<CallSpanKind, SpanKind> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

/**
 * Starts a step below `parent`. A call that is not sampled builds no spans: it only passes its context on.
 * Without an SDK behind the OpenTelemetry API the same is true of sampled ones.
 *
 * @param attributes a function on hot paths, called only for what is sampled
 */
export function startCallSpan(
  parent: TraceContext,
  name: string,
  kind: CallSpanKind,
  attributes: Attributes | (() => Attributes) = {},
): CallSpan {
  if (!isSampled(parent)) return new UnrecordedSpan(parent);
  const parentContext = trace.setSpanContext(ROOT_CONTEXT, {
    traceId: traceIdOf(parent),
    spanId: parent.traceparent.slice(36, 52),
    traceFlags: 1,
    isRemote: true,
    ...(parent.tracestate === undefined ? {} : { traceState: createTraceState(parent.tracestate) }),
  });
  const given = typeof attributes === 'function' ? attributes() : attributes;
  const options = { kind: KINDS[kind], attributes: given };
  const span = trace.getTracer('patchbay').startSpan(name, options, parentContext);
  return new RecordedSpan(span);
}

class UnrecordedSpan implements CallSpan {
  readonly context: TraceContext;

  constructor(context: TraceContext) {
    this.context = context;
  }

  setAttributes(): void {}
  fail(): void {}
  end(): void {}
}

class RecordedSpan implements CallSpan {
  readonly context: TraceContext;
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
    const tracestate = traceState?.serialize();
    this.context = tracestate === undefined || tracestate === '' ? { traceparent } : { traceparent, tracestate };
  }

  setAttributes(attributes: Attributes): void {
    this.#span.setAttributes(attributes);
  }

  fail(code: string, message: string): void {
    this.#span.setAttribute('error.type', code);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message });
  }

  end(): void {
    this.#span.end();
  }
}
