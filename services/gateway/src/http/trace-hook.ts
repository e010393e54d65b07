import { readTraceContext, traceIdOf } from '@patchbay/telemetry';
import type { TraceContext } from '@patchbay/telemetry';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const traces = new WeakMap<FastifyRequest, TraceContext>();

/** Gives every answer of Fastify's its `x-trace-id`. */
export function addTraceHook(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-trace-id', traceIdOf(traceOf(request)));
    done();
  });
}

/** Where a request stands in its trace: the caller's context, else a new one. */
export function traceOf(request: FastifyRequest): TraceContext {
  let trace = traces.get(request);
  if (trace === undefined) {
    const { traceparent, tracestate } = request.headers;
    trace = readTraceContext(asText(traceparent), asText(tracestate));
    traces.set(request, trace);
  }
  return trace;
}

function asText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
