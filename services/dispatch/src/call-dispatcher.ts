import { isStreamingMethod, readJsonRpcRequest, readProtocolVersion } from '@patchbay/a2a';
import { BusHeader } from '@patchbay/bus';
import type { Delivery, Exchange } from '@patchbay/bus';
import type { Clock } from '@patchbay/core';
import type { Directory } from '@patchbay/directory';
import { readTraceContext, startCallSpan } from '@patchbay/telemetry';
import type { Logger } from '@patchbay/telemetry';
import type { Dispatcher } from 'undici';
import { addressOf } from './agent-address.js';
import type { AgentAddress } from './agent-address.js';
import type { AgentFailure } from './agent-failure.js';
import { AgentRequest } from './agent-request.js';
import { Call } from './call.js';
import { CallsInHand } from './calls-in-hand.js';
import type { ConcurrencyLimit } from './concurrency-limit.js';
import { requestHeaders } from './request-headers.js';
import { StreamForwarder } from './stream-forwarder.js';
import type { StreamLimits } from './stream-forwarder.js';
import { UnaryForwarder } from './unary-forwarder.js';

/** What {@link CallDispatcher} works with. */
export interface CallDispatcherOptions {
  readonly directory: Pick<Directory, 'get'>;
  readonly client: Dispatcher;
  readonly limit: ConcurrencyLimit;
  /** Who refuses calls. */
  readonly nodeId: string;
  readonly streams: StreamLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** From what age on a unary call's deadline and caller are watched, milliseconds; looked at as often. */
const WATCH_AFTER_MS = 25;

/** Takes calls off the bus, decides whether they may go on, and starts the forwarder that carries each out. */
export class CallDispatcher {
  readonly #options: CallDispatcherOptions;
  readonly #inHand = new CallsInHand();
  readonly #streams = new Map<string, number>();
  #refusal: AgentFailure | undefined;
  #watching: NodeJS.Timeout | undefined;

  constructor(options: CallDispatcherOptions) {
    this.#options = options;
  }

  /** Calls that have not ended. */
  get inHand(): number {
    return this.#inHand.size;
  }

  /** Open event streams of each agent that has any. */
  get streams(): ReadonlyMap<string, number> {
    return this.#streams;
  }

  /** From now on refuses calls of fronts, which go elsewhere. A plain client of the bus could not: it is served. */
  refuseNew(failure: AgentFailure): void {
    this.#refusal = failure;
  }

  /** Ends every call in hand with `failure`. */
  failAll(failure: AgentFailure): void {
    for (const call of this.#inHand.snapshot()) call.fail(failure);
  }

  /** One call, from the bus to the agent. Hot path. */
  dispatch(delivery: Delivery, agentId: string): void {
    const { exchange, headers } = delivery;
    // Published, not requested: nobody waits for an answer, and nobody could be told of a failure.
    if (exchange === undefined) return;
    const { directory, limit, clock, logger, streams } = this.#options;
    const version = readProtocolVersion(headers[BusHeader.a2aVersion]);
    const call = new Call({
      delivery,
      exchange,
      agentId,
      version: version === 'unsupported' ? '1.0' : version,
      trace: readTraceContext(headers[BusHeader.traceparent], headers[BusHeader.tracestate]),
      clock,
      logger,
      budget: streams.budget,
    });
    if (this.#refusal !== undefined && exchange.wants !== 'any') {
      return call.refuse(this.#refusal, this.#options.nodeId);
    }
    if (version === 'unsupported') {
      const detail = `${headers[BusHeader.a2aVersion] ?? ''}; this gateway speaks 1.0 and 0.3`;
      return call.fail({ code: 'version_not_supported', detail });
    }
    // The subscription may outlive the agent for a moment: the directory has the word.
    const agent = directory.get(agentId);
    if (agent === undefined) return call.fail({ code: 'agent_not_found', detail: agentId });
    const address = addressOf(agent.record);
    if (address === undefined) {
      return call.fail({ code: 'agent_unreachable', detail: 'its registered URL cannot be called' });
    }
    const wantsStream = this.#wantsStream(call, exchange);
    if (call.isOver) return undefined;
    if (!limit.tryTake(agentId) && !(this.#expireOverdue(agentId) && limit.tryTake(agentId))) {
      const detail = `${agentId} has too many calls in hand`;
      return call.refuse({ code: 'concurrency_exceeded', detail }, this.#options.nodeId);
    }
    this.#inHand.add(call);
    this.#watching ??= setInterval(this.#watchOlder, WATCH_AFTER_MS);
    return wantsStream ? this.#stream(call, address) : this.#unary(call, address);
  }

  /**
   * Ends the agent's calls whose time is over. The caller of such a call may have been answered by the bus already, on
   * its own clock, and must not be refused a slot that it believes to be free. @returns whether there were any.
   */
  #expireOverdue(agentId: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    let hasEnded = false;
    for (const call of this.#inHand.snapshot()) {
      if (call.agentId === agentId && call.expireIfDue(nowMs)) hasEnded = true;
    }
    return hasEnded;
  }

  /** A plain client of the message system cannot say what it waits for; then the method decides. */
  #wantsStream(call: Call, exchange: Exchange): boolean {
    if (exchange.wants !== 'any') return exchange.wants === 'stream';
    const request = readJsonRpcRequest(call.body);
    if (request.ok) return isStreamingMethod(request.method);
    call.fail({ code: request.code, detail: request.detail });
    return false;
  }

  #unary(call: Call, address: AgentAddress): void {
    const forwarder = new UnaryForwarder(call, this.#options.streams);
    call.begin(this.#whenOver, WATCH_AFTER_MS);
    this.#send(call, address, false, forwarder);
  }

  #stream(call: Call, address: AgentAddress): void {
    let isStreaming = false;
    const forwarder = new StreamForwarder(call, this.#options.streams, () => {
      isStreaming = true;
      this.#streams.set(call.agentId, (this.#streams.get(call.agentId) ?? 0) + 1);
    });
    call.begin(() => {
      forwarder.close();
      if (isStreaming) this.#countStreamOut(call.agentId);
      this.#whenOver(call);
    }, Infinity);
    const request = this.#send(call, address, true, forwarder);
    if (request !== undefined) forwarder.attach(request);
  }

  #send(
    call: Call,
    address: AgentAddress,
    wantsStream: boolean,
    reader: UnaryForwarder | StreamForwarder,
  ): AgentRequest | undefined {
    // Its time may have been over, or the caller gone, before it began.
    if (call.isOver) return undefined;
    const span = startCallSpan(call.trace, 'POST', 'client', () => ({
      'http.request.method': 'POST',
      'server.address': address.host,
      'server.port': address.port,
      'url.path': address.path.split('?', 1)[0] ?? '/',
      'patchbay.agent_id': call.agentId,
    }));
    const headers = requestHeaders({ headers: call.headers, version: call.version, wantsStream, trace: span.context });
    const { origin, path } = address;
    const request = new AgentRequest(this.#options.client, { origin, path, headers, body: call.body }, reader);
    call.attach(request, span);
    request.send();
    return request;
  }

  /** One timer for all calls in hand; it runs only while there are any. */
  readonly #watchOlder = (): void => {
    if (this.#inHand.size === 0) {
      clearInterval(this.#watching);
      this.#watching = undefined;
      return;
    }
    const startedBeforeMs = this.#options.clock.monotonicMs() - WATCH_AFTER_MS;
    for (const call of this.#inHand.snapshot()) call.watchIfOlder(startedBeforeMs);
  };

  readonly #whenOver = (call: Call): void => {
    this.#inHand.remove(call);
    this.#options.limit.release(call.agentId);
  };

  #countStreamOut(agentId: string): void {
    const open = (this.#streams.get(agentId) ?? 1) - 1;
    if (open === 0) this.#streams.delete(agentId);
    else this.#streams.set(agentId, open);
  }
}
