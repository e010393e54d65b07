import { asPatchbayError } from '@patchbay/core';
import { isSampled, readTraceContext, startCallSpan } from '@patchbay/telemetry';
import type { CallSpan, TraceContext } from '@patchbay/telemetry';
import type { Bus, Delivery, Exchange, Handler, Headers, Message } from './bus.js';
import type { RequestOptions, StreamOptions, SubscribeOptions, Subscription } from './bus.js';
import { BusHeader } from './bus-header.js';
import { destinationTemplate } from './destination-template.js';
import { TracedExchange } from './traced-exchange.js';

/**
 * Puts a `publish` span around every request and stream, and a `process` span around every exchange, in the trace that
 * their headers name. Published messages are not traced.
 *
 * Hot path: a call that is not sampled costs one look at its `traceparent` and is handed on untouched.
 */
export class TracedBus implements Bus {
  readonly #bus: Bus;
  readonly #system: 'nats' | 'memory';

  /** @param system Value of `messaging.system`. */
  constructor(bus: Bus, system: 'nats' | 'memory') {
    this.#bus = bus;
    this.#system = system;
  }

  publish(subject: string, body: Uint8Array, headers?: Headers): void {
    this.#bus.publish(subject, body, headers);
  }

  subscribe(subject: string, handler: Handler, options?: SubscribeOptions): Subscription {
    const traced: Handler = (delivery) => {
      const { exchange, headers } = delivery;
      const parent = exchange === undefined ? undefined : sampledContext(headers);
      if (exchange === undefined || parent === undefined) return handler(delivery);
      return this.#process(handler, delivery, exchange, parent);
    };
    return this.#bus.subscribe(subject, traced, options);
  }

  request(subject: string, body: Uint8Array, options: RequestOptions): Promise<Message> {
    const parent = sampledContext(options.headers);
    if (parent === undefined) return this.#bus.request(subject, body, options);
    return this.#request(subject, body, options, parent);
  }

  stream(subject: string, body: Uint8Array, options: StreamOptions): AsyncIterable<Message> {
    const parent = sampledContext(options.headers);
    if (parent === undefined) return this.#bus.stream(subject, body, options);
    return {
      [Symbol.asyncIterator]: () => this.#stream(subject, body, options, parent),
    };
  }

  flush(): Promise<void> {
    return this.#bus.flush();
  }

  get isUp(): boolean {
    return this.#bus.isUp;
  }

  onStatus(listener: (isUp: boolean) => void): () => void {
    return this.#bus.onStatus(listener);
  }

  close(): Promise<void> {
    return this.#bus.close();
  }

  async #request(subject: string, body: Uint8Array, options: RequestOptions, parent: TraceContext): Promise<Message> {
    const span = this.#start('publish', subject, body, parent);
    try {
      return await this.#bus.request(subject, body, { ...options, headers: within(options.headers, span) });
    } catch (error) {
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  }

  async *#stream(
    subject: string,
    body: Uint8Array,
    options: StreamOptions,
    parent: TraceContext,
  ): AsyncGenerator<Message, void, undefined> {
    const span = this.#start('publish', subject, body, parent);
    try {
      yield* this.#bus.stream(subject, body, { ...options, headers: within(options.headers, span) });
    } catch (error) {
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  }

  #process(handler: Handler, delivery: Delivery, exchange: Exchange, parent: TraceContext): void | Promise<void> {
    const { subject, body, headers } = delivery;
    const span = this.#start('process', subject, body, parent);
    const leftMs = exchange.wants === 'unary' ? Math.max(0, exchange.deadlineMs - performance.now()) : undefined;
    const traced = new TracedExchange(exchange, span, leftMs);
    const failed = (error: unknown): never => {
      const { code, message } = asPatchbayError(error);
      traced.endSpan(code, message);
      throw error;
    };
    try {
      const running = handler({ subject, body, headers: within(headers, span), exchange: traced });
      // A handler may return at once and answer later; one that is awaited has done what it does.
      return running?.then(() => {
        traced.endSpan();
      }, failed);
    } catch (error) {
      return failed(error);
    }
  }

  #start(operation: 'publish' | 'process', subject: string, body: Uint8Array, parent: TraceContext): CallSpan {
    const template = destinationTemplate(subject);
    const kind = operation === 'publish' ? 'producer' : 'consumer';
    return startCallSpan(parent, `${template} ${operation}`, kind, {
      'messaging.system': this.#system,
      'messaging.destination.name': subject,
      'messaging.destination.template': template,
      'messaging.operation.name': operation,
      'messaging.operation.type': operation === 'publish' ? 'send' : 'process',
      'messaging.message.body.size': body.length,
    });
  }
}

/** The context of a sampled call; undefined for every other. */
function sampledContext(headers: Headers | undefined): TraceContext | undefined {
  const traceparent = headers?.[BusHeader.traceparent];
  // Ends in its flags; "0" is what all that are not sampled end in.
  if (traceparent === undefined || traceparent.endsWith('0')) return undefined;
  const context = readTraceContext(traceparent, headers?.[BusHeader.tracestate]);
  return isSampled(context) ? context : undefined;
}

/** The headers with the span as what comes next is a child of. */
function within(headers: Headers | undefined, span: CallSpan): Headers {
  const { traceparent, tracestate } = span.context;
  const changed = { ...headers, [BusHeader.traceparent]: traceparent };
  return tracestate === undefined ? changed : { ...changed, [BusHeader.tracestate]: tracestate };
}

function fail(span: CallSpan, error: unknown): void {
  const { code, message } = asPatchbayError(error);
  span.fail(code, message);
}
