import { encodeJsonRpcError, readJsonRpcRequest } from '@patchbay/a2a';
import type { ProtocolVersion } from '@patchbay/a2a';
import { BusHeader } from '@patchbay/bus';
import type { Delivery, Exchange, Headers } from '@patchbay/bus';
import type { ByteBudget, ByteClaim, Clock } from '@patchbay/core';
import { traceIdOf } from '@patchbay/telemetry';
import type { CallSpan, Logger, TraceContext } from '@patchbay/telemetry';
import type { AgentFailure } from './agent-failure.js';
import type { AgentRequest } from './agent-request.js';

/** What a {@link Call} needs from around it. */
export interface CallOptions {
  readonly delivery: Delivery;
  readonly exchange: Exchange;
  readonly agentId: string;
  readonly version: ProtocolVersion;
  readonly trace: TraceContext;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where the room for a large reply comes from. */
  readonly budget: ByteBudget;
}

/**
 * The caller's side of one call in hand: its answer, its deadline and its cancellation. Ends exactly once, and then
 * lets go of everything the call holds: timer, listener, slot and the connection to the agent.
 */
export class Call {
  readonly agentId: string;
  readonly body: Uint8Array;
  readonly headers: Headers;
  readonly version: ProtocolVersion;
  readonly trace: TraceContext;
  /** Where it stands among the calls in hand; theirs to change. */
  position = 0;
  readonly #exchange: Exchange;
  #signal: AbortSignal | undefined;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #startedMs: number;
  readonly #budget: ByteBudget;
  #claim: ByteClaim | undefined;
  #timer: NodeJS.Timeout | undefined;
  #request: AgentRequest | undefined;
  #span: CallSpan | undefined;
  #whenOver: ((call: Call) => void) | undefined;
  #isClockOff = false;
  #isOver = false;

  constructor(options: CallOptions) {
    this.agentId = options.agentId;
    this.body = options.delivery.body;
    this.headers = options.delivery.headers;
    this.version = options.version;
    this.trace = options.trace;
    this.#exchange = options.exchange;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#budget = options.budget;
    this.#startedMs = options.clock.monotonicMs();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Starts the deadline and listens for the caller's cancel; `whenOver` is told once, whatever ends the call.
   * Both wait for {@link watchIfOlder}, unless the call's time is over within twice `patienceMs`. Hot path: most calls
   * are over before, and a timer and an abort signal made for nothing cost more than all else here.
   */
  begin(whenOver: (call: Call) => void, patienceMs: number): void {
    this.#whenOver = whenOver;
    const leftMs = this.#exchange.deadlineMs - this.#startedMs;
    if (leftMs <= 0) this.#expire();
    else if (leftMs <= patienceMs * 2) this.#watch();
  }

  /** Watches deadline and cancel from now on when the call began before `startedBeforeMs`. Idempotent. */
  watchIfOlder(startedBeforeMs: number): void {
    if (this.#signal === undefined && !this.#isOver && this.#startedMs <= startedBeforeMs) this.#watch();
  }

  /** Ends the call if its time is over and only the timer has not run yet. @returns whether it has ended. */
  expireIfDue(nowMs: number): boolean {
    if (!this.#isClockOff && this.#exchange.deadlineMs <= nowMs) this.#expire();
    return this.#isOver;
  }

  /** The agent's side, ended together with the call. */
  attach(request: AgentRequest, span: CallSpan): void {
    this.#request = request;
    this.#span = span;
  }

  /** Asks for room for a large reply, `bytes` in all; given back when the call is over. @returns whether there is any */
  reserve(bytes: number): boolean {
    this.#claim ??= this.#budget.claim();
    return this.#claim.reserve(bytes);
  }

  /** Notes the agent's HTTP status on the trace. */
  noteStatus(status: number): void {
    this.#span?.setAttributes({ 'http.response.status_code': status });
  }

  /** From here on the stream's idle time is the only clock. */
  clearDeadline(): void {
    clearTimeout(this.#timer);
    this.#isClockOff = true;
  }

  /** Whether the request has no id, so that no answer is expected. Parses the body. */
  isNotification(): boolean {
    const request = readJsonRpcRequest(this.body);
    return request.ok && request.idJson === undefined;
  }

  /** Ends the call with the agent's reply. */
  reply(body: Uint8Array, headers: Headers): void {
    if (this.#isOver) return;
    this.#exchange.reply(body, headers);
    this.#finish();
  }

  /** Sends one part of a stream on; resolves when there is room for the next. */
  write(body: Uint8Array, headers: Headers): Promise<void> {
    return this.#exchange.write(body, headers);
  }

  /** Ends a stream well. */
  end(): void {
    if (this.#isOver) return;
    this.#exchange.end();
    this.#finish();
  }

  /** Ends the call with an error in the caller's own protocol. */
  fail(failure: AgentFailure): void {
    this.#fail(failure, undefined);
  }

  /** Ends a call of which nothing was sent to the agent; that `nodeId` says so lets the front try other nodes. */
  refuse(failure: AgentFailure, nodeId: string): void {
    this.#fail(failure, { [BusHeader.node]: nodeId });
  }

  /** The only place that parses a body to word an error. */
  #fail(failure: AgentFailure, refusal: Headers | undefined): void {
    if (this.#isOver) return;
    const { code, detail } = failure;
    const request = readJsonRpcRequest(this.body);
    const traceId = traceIdOf(this.trace);
    const idJson = request.idJson;
    const error = encodeJsonRpcError({ code, detail, idJson, version: this.version, traceId });
    this.#exchange.fail(code, detail, error, refusal);
    this.#span?.fail(code, detail);
    this.#log(failure, traceId, refusal === undefined ? 'warn' : 'debug');
    this.#finish();
  }

  readonly #watch = (): void => {
    const { signal, deadlineMs } = this.#exchange;
    if (signal.aborted) return this.#cancel();
    signal.addEventListener('abort', this.#cancel);
    this.#signal = signal;
    if (this.#isClockOff) return undefined;
    const leftMs = deadlineMs - this.#clock.monotonicMs() - HEAD_START_MS;
    this.#timer = setTimeout(this.#expire, Math.min(leftMs, MAX_TIMER_MS));
    return undefined;
  };

  readonly #expire = (): void => {
    this.fail({ code: 'deadline_exceeded', detail: this.agentId });
  };

  readonly #cancel = (): void => {
    if (this.#isOver) return;
    this.#exchange.fail('cancelled', 'the caller left');
    this.#span?.fail('cancelled', 'the caller left');
    this.#finish();
  };

  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#cancel);
    this.#request?.abort();
    this.#claim?.release();
    this.#span?.end();
    this.#whenOver?.(this);
  }

  #log(failure: AgentFailure, traceId: string, level: 'warn' | 'debug'): void {
    this.#logger[level](
      {
        agent_id: this.agentId,
        call_id: this.headers[BusHeader.call],
        code: failure.code,
        trace_id: traceId,
        duration_ms: Math.round(this.#clock.monotonicMs() - this.#startedMs),
      },
      `call failed: ${failure.detail}`,
    );
  }
}

/**
 * How long before the caller's own clock the deadline strikes here, so that it is this side that words the error, and
 * the slot is free when the caller hears of it.
 */
const HEAD_START_MS = 1;
/** Longest delay a timer of Node takes; longer ones would fire at once. */
const MAX_TIMER_MS = 0x7fff_ffff;
