import type { ProtocolVersion } from '@patchbay/a2a';
import { BusHeader } from '@patchbay/bus';
import type { Headers } from '@patchbay/bus';
import type { TraceContext } from '@patchbay/telemetry';

/** What {@link requestHeaders} is made from. */
export interface RequestHeadersInput {
  /** Headers of the call on the bus. */
  readonly headers: Headers;
  readonly version: ProtocolVersion;
  readonly wantsStream: boolean;
  /** The step that the agent's own spans belong under. */
  readonly trace: TraceContext;
}

/** Words that no header name may contain on its way to an agent: credentials, and who the caller's proxies are. */
const FORBIDDEN = /authorization|cookie|x-forwarded-for/;
/** Names that are ours to set; a caller's own value would be a forgery. */
const OURS = 'x-kubemq-';
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The headers an agent gets, as a flat list of names and values. Hot path.
 *
 * Of the client's own headers only `X-…` and `Accept` go on. No `Accept-Encoding`, so that agents do not compress.
 */
export function requestHeaders(input: RequestHeadersInput): string[] {
  const { headers, version, trace } = input;
  const list = [
    'content-type',
    'application/json',
    'x-kubemq-caller-id',
    usable(headers[BusHeader.caller]) ?? 'anonymous',
    'traceparent',
    trace.traceparent,
  ];
  if (trace.tracestate !== undefined && VALUE.test(trace.tracestate)) list.push('tracestate', trace.tracestate);
  // An agent may be a gateway of this kind, and a loop of them must end.
  const hops = usable(headers[BusHeader.hops]);
  if (hops !== undefined) list.push('patchbay-hops', hops);
  // Agents compare the string: `1.0.3` would be refused where `1.0` is meant.
  if (version !== undefined) list.push('a2a-version', version);
  const extensions = usable(headers[BusHeader.a2aExtensions]);
  if (extensions !== undefined) list.push('a2a-extensions', extensions);

  let accept: string | undefined;
  for (const key in headers) {
    if (!key.startsWith(BusHeader.forwardPrefix)) continue;
    const name = key.slice(BusHeader.forwardPrefix.length).toLowerCase();
    const value = headers[key] ?? '';
    if (!VALUE.test(value)) continue;
    if (name === 'accept') accept = value;
    else if (isForwarded(name)) list.push(name, value);
  }
  list.push('accept', accept ?? (input.wantsStream ? 'application/json, text/event-stream' : 'application/json'));
  return list;
}

function isForwarded(name: string): boolean {
  return name.startsWith('x-') && TOKEN.test(name) && !FORBIDDEN.test(name) && !name.startsWith(OURS);
}

function usable(value: string | undefined): string | undefined {
  return value === undefined || value === '' || !VALUE.test(value) ? undefined : value;
}
