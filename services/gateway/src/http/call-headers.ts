import type { IncomingHttpHeaders } from 'node:http';
import { newCallId } from '@patchbay/core';
import { BusHeader } from '@patchbay/bus';
import type { TraceContext } from '@patchbay/telemetry';

/** Through how many gateways a call may go: agents can be gateways, and a loop must end. */
export const MAX_HOPS = 8;

/** Says how many gateways a call has passed; the same name on HTTP and on the bus. */
export const HOPS_HEADER = BusHeader.hops.toLowerCase();

/** How many gateways the call will have passed with this one. What is not a number counts as none. */
export function countHops(headers: IncomingHttpHeaders): number {
  const value = headers[HOPS_HEADER];
  return typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) + 1 : 1;
}

// Credentials, and what a proxy says about the client, are the gateway's business and not the agent's.
const NOT_FORWARDED = /^x-forwarded-|^x-kubemq-|authorization|cookie/;
// Node's parser lets none of these through; a value with one would end the header on the bus.
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const LINE_BREAK = /[\r\n\0]/;

/**
 * The headers that travel with a call. The client's own are bounded by the server's limit on all headers together.
 * Hot path.
 */
export function callHeaders(headers: IncomingHttpHeaders, trace: TraceContext, hops: number): Record<string, string> {
  const out: Record<string, string> = {
    [BusHeader.call]: newCallId(),
    [BusHeader.caller]: 'anonymous',
    [BusHeader.hops]: String(hops),
    [BusHeader.traceparent]: trace.traceparent,
  };
  if (trace.tracestate !== undefined) out[BusHeader.tracestate] = trace.tracestate;
  const hopByHop = connectionNames(headers.connection);
  for (const name in headers) {
    if (name.startsWith('x-')) {
      const value = headers[name];
      if (hopByHop?.has(name) === true) continue;
      if (typeof value === 'string' && !NOT_FORWARDED.test(name) && !LINE_BREAK.test(value)) {
        out[BusHeader.forwardPrefix + name] = value;
      }
    }
  }
  // Some agents choose between a stream and a plain answer by it.
  const { accept } = headers;
  if (accept !== undefined && !LINE_BREAK.test(accept)) out[`${BusHeader.forwardPrefix}accept`] = accept;
  const version = headers['a2a-version'];
  if (typeof version === 'string') out[BusHeader.a2aVersion] = version;
  const extensions = headers['a2a-extensions'];
  if (typeof extensions === 'string') out[BusHeader.a2aExtensions] = extensions;
  return out;
}

/** Names that concern this connection alone, as the client says. Source: RFC 9110 section 7.6.1. */
function connectionNames(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}
