import type { IncomingMessage, ServerResponse } from 'node:http';
import { isStreamingMethod, methodLabel, readJsonRpcRequest } from '@patchbay/a2a';
import type { Message } from '@patchbay/bus';
import { AGENT_ID_PATTERN, AGENT_ID_RULE, asPatchbayError, newCallId, PatchbayError } from '@patchbay/core';
import type { ByteBudget, ErrorCode } from '@patchbay/core';
import { isDispatching, ServiceNodes } from '@patchbay/directory';
import { wordError, statusOf } from './call-error.js';
import { callHeaders, countHops, MAX_HOPS } from './call-headers.js';
import { CallRouter } from './call-router.js';
import { explainContentType, isJsonContentType } from './content-type.js';
import { DispatcherRetry } from './dispatcher-retry.js';
import type { HttpFrontOptions } from './front-options.js';
import { InboundCall } from './inbound-call.js';
import { leaveSignal } from './leave-signal.js';
import { readKeepaliveQuery } from './keepalive.js';
import type { ReplyWriter } from './reply-writer.js';
import { readRequestBody } from './request-body.js';
import type { RequestBody, RequestBodyLimits } from './request-body.js';
import { SseWriter } from './sse-writer.js';
import { StreamCaller } from './stream-call.js';
import { relayedHeaders, UnaryCaller } from './unary-call.js';
import type { OutboundCall } from './unary-call.js';

const NO_BODY = new Uint8Array(0);
const POST_ROUTE = '/a2a/{agent_id}';
const STREAM_ROUTE = '/a2a/{agent_id}/stream';

/** Ids are echoed in errors; nobody needs one of megabytes. */
const MAX_ID_LENGTH = 1024;

/** What of a request is left when it passed the checks. */
interface CheckedRequest {
  readonly body: Uint8Array;
  readonly method: string;
  /** Time that the caller asks for, in milliseconds. */
  readonly timeoutMs: number | undefined;
}

/**
 * `/a2a/{agent_id}`: checks a JSON-RPC call, hands it to dispatch, and writes what comes back. Works on Node's own
 * request and response: this is the hot path, and half of it are streams.
 */
export class A2aEndpoint {
  readonly #options: HttpFrontOptions & { readonly budget: ByteBudget };
  readonly #bodyLimits: RequestBodyLimits;
  readonly #replies: ReplyWriter;
  readonly #nodes: ServiceNodes | undefined;
  readonly #unary: UnaryCaller;
  readonly #streams: StreamCaller;

  constructor(options: HttpFrontOptions & { readonly budget: ByteBudget }, replies: ReplyWriter) {
    this.#options = options;
    this.#replies = replies;
    const { membership, settings, budget } = options;
    this.#bodyLimits = { maxBytes: settings.maxRequestBytes, budget };
    this.#nodes = membership === undefined ? undefined : new ServiceNodes({ membership, serves: isDispatching });
    const router = new CallRouter({
      ...options,
      retry: new DispatcherRetry(options),
      nodes: this.#nodes,
      isServedHere: settings.localFirst !== false && membership?.runs('dispatch') === true,
    });
    this.#unary = new UnaryCaller({ ...options, router });
    this.#streams = new StreamCaller({ ...options, router });
  }

  /** Lets go of what follows the other nodes. Idempotent. */
  close(): void {
    this.#nodes?.close();
  }

  /**
   * `POST /a2a/{agent_id}`. Hot path: a unary call waits for its body and for its answer with one callback each, where
   * a chain of async functions would cost a tenth of its time.
   * @param agentId as it stands in the path, not percent-decoded
   */
  post(request: IncomingMessage, response: ServerResponse, agentId: string): void {
    const call = new InboundCall(request, response, agentId, POST_ROUTE);
    const contentType = request.headers['content-type'];
    if (isJsonContentType(contentType)) {
      readRequestBody(call, this.#bodyLimits, (body) => this.#take(call, body));
    } else {
      this.#fail(call, new PatchbayError('parse_error', explainContentType(contentType)));
      call.span.end();
    }
  }

  #take(call: InboundCall, body: RequestBody): void {
    try {
      const checked = this.#check(call, body);
      if (checked === undefined) call.span.end();
      else if (isStreamingMethod(checked.method)) void this.#stream(call, checked);
      else void this.#answer(call, checked);
    } catch (error) {
      this.#fail(call, error);
      call.span.end();
    }
  }

  /** @returns undefined when the client has left meanwhile. @throws PatchbayError why the call cannot go on */
  #check(call: InboundCall, body: RequestBody): CheckedRequest | undefined {
    if (body.kind === 'aborted') return undefined;
    if (body.kind === 'too_large') {
      throw new PatchbayError('request_too_large', `over ${this.#bodyLimits.maxBytes} bytes`);
    }
    if (body.kind === 'no_room') throw this.#options.budget.refusal();
    const parsed = readJsonRpcRequest(body.bytes);
    if ((parsed.idJson?.length ?? 0) > MAX_ID_LENGTH) {
      throw new PatchbayError('invalid_argument', `id is longer than ${MAX_ID_LENGTH} characters`);
    }
    call.idJson = parsed.idJson;
    if (!parsed.ok) throw new PatchbayError(parsed.code, parsed.detail);
    this.#checkTarget(call);
    return { body: body.bytes, method: parsed.method, timeoutMs: parsed.timeoutMs };
  }

  /** `GET /a2a/{agent_id}/stream`: a `message/stream` without a message. Never rejects. */
  async getStream(request: IncomingMessage, response: ServerResponse, agentId: string): Promise<void> {
    const call = new InboundCall(request, response, agentId, STREAM_ROUTE);
    try {
      this.#checkTarget(call);
    } catch (error) {
      this.#fail(call, error);
      call.span.end();
      return;
    }
    const id = newCallId();
    const body = Buffer.from(`{"jsonrpc":"2.0","id":"${id}","method":"message/stream","params":{}}`);
    await this.#stream(call, { body, method: 'message/stream', timeoutMs: undefined });
  }

  #checkTarget(call: InboundCall): void {
    if (!AGENT_ID_PATTERN.test(call.agentId)) {
      throw new PatchbayError('invalid_argument', `agent id must be ${AGENT_ID_RULE}; got ${shown(call.agentId)}`);
    }
    if (!call.isVersionSupported) {
      const asked = shown(String(call.request.headers['a2a-version']));
      throw new PatchbayError('version_not_supported', `A2A-Version ${asked}; send 1.0 or 0.3`);
    }
    if (countHops(call.request.headers) > MAX_HOPS) {
      const loop = `the call went through ${MAX_HOPS} gateways; an agent's url leads back to a gateway`;
      throw new PatchbayError('agent_unreachable', loop);
    }
  }

  #answer(call: InboundCall, checked: CheckedRequest): Promise<void> {
    const { method } = checked;
    return this.#unary.call(this.#outbound(call, checked)).then(
      (reply) => {
        try {
          this.#relay(call, method, reply);
        } catch (error) {
          this.#refuse(call, method, error);
        }
        call.span.end();
      },
      (error: unknown) => {
        this.#refuse(call, method, error);
        call.span.end();
      },
    );
  }

  #relay(call: InboundCall, method: string, reply: Message): void {
    const isNotification = call.idJson === undefined;
    if (!isNotification) this.#replies.assertRoom(reply.body.length);
    this.#count(call, method);
    this.#options.metrics.recordCall('unary', performance.now() - call.startedMs);
    this.#replies.write(call.response, {
      status: isNotification ? 202 : 200,
      traceId: call.traceId,
      body: isNotification ? NO_BODY : reply.body,
      headers: relayedHeaders(reply.headers),
    });
  }

  #refuse(call: InboundCall, method: string, error: unknown): void {
    this.#count(call, method, error);
    if (call.idJson !== undefined) return this.#fail(call, error);
    // A notification has no answer, not even an error (JSON-RPC 2.0 section 4.1).
    this.#note(call, error);
    return this.#replies.write(call.response, { status: 202, traceId: call.traceId, body: NO_BODY });
  }

  async #stream(call: InboundCall, checked: CheckedRequest): Promise<void> {
    try {
      await this.#runStream(call, checked);
    } catch (error) {
      this.#fail(call, error);
    } finally {
      call.span.end();
    }
  }

  async #runStream(call: InboundCall, checked: CheckedRequest): Promise<void> {
    const { settings, readiness, metrics, budget } = this.#options;
    const asked = readKeepaliveQuery(call.request.url ?? '');
    const usualMs = settings.keepaliveSeconds * 1000;
    const keepaliveMs = asked ?? usualMs;
    let closeGauge: (() => void) | undefined;
    const writer = new SseWriter(call.response, {
      traceId: call.traceId,
      stalledMs: settings.streamIdleSeconds * 1000,
      isDraining: () => readiness.isDraining,
      budget,
    });
    const outbound = this.#outbound(call, checked);
    const { signal } = outbound;
    const onLeave = (): void => closeGauge?.();
    signal.addEventListener('abort', onLeave);
    try {
      const outcome = await this.#streams.run(
        {
          ...outbound,
          writer,
          wording: call.wording,
          keepaliveMs,
          holdMs: keepaliveMs || usualMs || DEFAULT_HOLD_MS,
          isKubemqCaller: checked.method === 'message/stream' && call.version === undefined,
        },
        (error) => {
          const isCounted = this.#count(call, checked.method, error);
          if (error === undefined && isCounted && !signal.aborted) closeGauge = metrics.openStream(call.agentId);
        },
      );
      if (outcome.kind === 'failed') throw outcome.error;
      if (outcome.kind === 'streamed' && outcome.error !== undefined) this.#note(call, outcome.error);
      if (outcome.kind === 'whole') {
        this.#replies.assertRoom(outcome.reply.body.length);
        this.#replies.write(call.response, {
          status: 200,
          traceId: call.traceId,
          body: outcome.reply.body,
          headers: relayedHeaders(outcome.reply.headers),
        });
      }
    } finally {
      signal.removeEventListener('abort', onLeave);
      closeGauge?.();
      metrics.recordCall('stream', performance.now() - call.startedMs);
    }
  }

  #outbound(call: InboundCall, { body, timeoutMs }: CheckedRequest): OutboundCall {
    const { defaultTimeoutSeconds, maxTimeoutSeconds } = this.#options.settings;
    return {
      agentId: call.agentId,
      body,
      headers: callHeaders(call.request.headers, call.span.context, countHops(call.request.headers)),
      timeoutMs: Math.min(timeoutMs ?? defaultTimeoutSeconds * 1000, maxTimeoutSeconds * 1000),
      signal: leaveSignal(call.request),
    };
  }

  /** Counts a call to a registered agent, before its answer goes out. @returns whether it was counted */
  #count(call: InboundCall, method: string, error?: unknown): boolean {
    // Ids that are not registered get no series: anybody could make up any number of them.
    const isRegistered =
      this.#options.directory.get(call.agentId) !== undefined ||
      error === undefined ||
      (error instanceof PatchbayError && COUNTED_WITHOUT_DIRECTORY.has(error.code));
    if (isRegistered) this.#options.metrics.countRequest(call.agentId, methodLabel(method));
    return isRegistered;
  }

  #fail(call: InboundCall, error: unknown): void {
    const { code, body } = wordError(error, call.wording);
    this.#note(call, error);
    this.#replies.write(call.response, { status: statusOf(code, call.hasVersion), traceId: call.traceId, body });
  }

  /** Leaves an error in metrics, trace and, when it is our own fault, in the log. */
  #note(call: InboundCall, error: unknown): void {
    const { code, message } = asPatchbayError(error);
    if (code === 'cancelled' && call.response.destroyed) return;
    this.#options.metrics.countError(code);
    call.span.fail(code, message);
    if (code === 'internal') {
      this.#options.logger.error({ err: error, trace_id: call.traceId, agent_id: call.agentId }, 'a call failed');
    }
  }
}

/** Headers of a stream wait so long for its first event when nothing else says how long. */
const DEFAULT_HOLD_MS = 30_000;

/** Codes that only the dispatch of an existing agent can have given. */
const COUNTED_WITHOUT_DIRECTORY: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'agent_unreachable',
  'agent_http_error',
  'agent_bad_reply',
  'response_too_large',
  'concurrency_exceeded',
]);

/** What a client sent, fit for a message: bounded and on one line. */
function shown(text: string): string {
  return JSON.stringify(text.length > 140 ? `${text.slice(0, 140)}…` : text);
}
