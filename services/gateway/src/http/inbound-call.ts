import type { IncomingMessage, ServerResponse } from 'node:http';
import { readProtocolVersion } from '@patchbay/a2a';
import type { ProtocolVersion } from '@patchbay/a2a';
import { readTraceContext, startCallSpan, traceIdOf } from '@patchbay/telemetry';
import type { CallSpan } from '@patchbay/telemetry';
import type { ErrorWording } from './call-error.js';

/** One call while it is in this front: who asked, what it belongs to, and what is known of it so far. */
export class InboundCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The id in the path, as it came. */
  readonly agentId: string;
  readonly span: CallSpan;
  readonly traceId: string;
  /** What the caller speaks; `unsupported` versions are answered in the newest one's words. */
  readonly version: ProtocolVersion;
  readonly isVersionSupported: boolean;
  /** The caller names a version: it takes HTTP statuses other than 200. */
  readonly hasVersion: boolean;
  readonly startedMs = performance.now();
  /** Known when the body is read. */
  idJson: string | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, agentId: string, route: string) {
    this.request = request;
    this.response = response;
    this.agentId = agentId;
    const { headers } = request;
    const trace = readTraceContext(single(headers['traceparent']), single(headers['tracestate']));
    this.span = startCallSpan(trace, `${request.method ?? 'POST'} ${route}`, 'server', () => ({
      'http.request.method': request.method ?? 'POST',
      'http.route': route,
      'patchbay.agent_id': agentId,
    }));
    this.traceId = traceIdOf(this.span.context);
    const version = readProtocolVersion(single(headers['a2a-version']));
    this.hasVersion = version !== undefined;
    this.isVersionSupported = version !== 'unsupported';
    this.version = version === 'unsupported' ? '1.0' : version;
  }

  get wording(): ErrorWording {
    return { agentId: this.agentId, idJson: this.idJson, version: this.version, traceId: this.traceId };
  }
}

/** Node joins repeated headers into one text; only `set-cookie` comes as a list. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
