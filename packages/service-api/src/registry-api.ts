import { BusHeader } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { Bus, Delivery, Handler, Headers, Message, RequestOptions, Subjects, Subscription } from '@patchbay/bus';
import type { Dialect, RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { decodeBody, encodeBody } from './json-body.js';
import { askService, NO_ROSTER } from './service-subject.js';
import type { ServiceRoster, ServiceSubject } from './service-subject.js';

/** What every operation of a service takes beside its arguments. */
export interface CallOptions {
  /** Milliseconds for the whole call. Default 10,000. */
  readonly timeoutMs?: number;
  /** Trace context and caller, as bus headers. */
  readonly headers?: Headers;
  readonly signal?: AbortSignal;
}

/** A chunk of the registry's history or state, see {@link RegistryHandlers.changes}. */
export type ChangesChunk =
  /** Forget everything older: the next chunks up to `head` are the whole state as of `revision`. */
  | { readonly kind: 'snapshot'; readonly revision: number }
  | { readonly kind: 'agents'; readonly agents: readonly RegisteredAgent[] }
  | { readonly kind: 'events'; readonly events: readonly RegistryEvent[] }
  /** Last chunk: where the registry's head was. */
  | { readonly kind: 'head'; readonly revision: number };

/** The registry service as its callers see it. */
export interface RegistryHandlers {
  /**
   * Reads and stores a card, exactly as the client sent it. Answers when every live node has applied it, or after
   * 250 ms. Idempotent but for `lastSeenMs`.
   * @throws PatchbayError parse_error, invalid_argument, request_too_large, agent_limit_reached, store_unavailable
   */
  register(card: Uint8Array, context: { dialect: Dialect; delivery: Delivery }): Promise<RegisteredAgent>;
  /** @throws PatchbayError agent_not_found, store_unavailable */
  deregister(agentId: string, context: { delivery: Delivery }): Promise<void>;
  /** The registry's own word on one agent; asked when a directory may lag. */
  lookup(agentId: string): Promise<RegisteredAgent | null>;
  /** What happened after `sinceRevision`: events, or a snapshot when they are pruned or too many. */
  changes(sinceRevision: number): AsyncIterable<ChangesChunk>;
}

const DEFAULT_TIMEOUT_MS = 10_000;
type Operation = Parameters<Subjects['registry']>[0];

/** Calls the registry service over the bus. Errors arrive as the PatchbayError that the service threw. */
export class RegistryClient {
  readonly #bus: Bus;
  readonly #subjects: Subjects;
  readonly #roster: ServiceRoster;

  /** @param roster Which nodes to ask by name while one does not answer. Default: none, ever. */
  constructor(bus: Bus, subjects: Subjects, roster: ServiceRoster = NO_ROSTER) {
    this.#bus = bus;
    this.#subjects = subjects;
    this.#roster = roster;
  }

  async register(card: Uint8Array, dialect: Dialect, options: CallOptions = {}): Promise<RegisteredAgent> {
    const headers = { ...options.headers, [BusHeader.dialect]: dialect };
    const reply = await this.#ask('register', card, withDefaults(options, headers));
    return decodeBody<RegisteredAgent>(reply.body);
  }

  async deregister(agentId: string, options: CallOptions = {}): Promise<void> {
    await this.#ask('deregister', encodeBody({ agentId }), withDefaults(options));
  }

  async lookup(agentId: string, options: CallOptions = {}): Promise<RegisteredAgent | null> {
    const reply = await this.#ask('lookup', encodeBody({ agentId }), withDefaults(options));
    return decodeBody<RegisteredAgent | null>(reply.body);
  }

  async *changes(sinceRevision: number, options: CallOptions = {}): AsyncIterable<ChangesChunk> {
    const body = encodeBody({ sinceRevision });
    const [nodeId] = this.#roster.byName();
    const { queue, ofNode } = this.#subject('changes');
    // Asked for again when it fails, and then of another node.
    const subject = nodeId === undefined ? queue : ofNode(nodeId);
    try {
      for await (const part of this.#bus.stream(subject, body, withDefaults(options))) {
        yield decodeBody<ChangesChunk>(part.body);
      }
    } catch (error) {
      if (error instanceof PatchbayError && error.code === 'node_lost') this.#roster.noteLoss();
      throw error;
    }
  }

  #ask(operation: Operation, body: Uint8Array, options: RequestOptions): Promise<Message> {
    // A second deregistration would say that there is no such agent.
    const isRepeatable = operation !== 'deregister';
    return askService(this.#bus, this.#subject(operation), body, { ...options, roster: this.#roster, isRepeatable });
  }

  #subject(operation: Operation): ServiceSubject {
    return {
      queue: this.#subjects.registry(operation),
      ofNode: (nodeId) => this.#subjects.registryNode(nodeId, operation),
    };
  }
}

/**
 * Serves the registry's subjects; the caller drains what is returned.
 * @param nodeId Under which name this node is asked when others do not answer. Default: under none.
 */
export function serveRegistry(
  bus: Bus,
  subjects: Subjects,
  handlers: RegistryHandlers,
  nodeId?: string,
): Subscription[] {
  const serve: Record<Operation, Handler> = {
    register: async (delivery) => {
      const dialect = (delivery.headers[BusHeader.dialect] ?? 'kubemq') as Dialect;
      const agent = await handlers.register(delivery.body, { dialect, delivery });
      delivery.exchange?.reply(encodeBody(agent));
    },
    deregister: async (delivery) => {
      await handlers.deregister(decodeBody<{ agentId: string }>(delivery.body).agentId, { delivery });
      delivery.exchange?.reply(encodeBody({}));
    },
    lookup: async (delivery) => {
      const agent = await handlers.lookup(decodeBody<{ agentId: string }>(delivery.body).agentId);
      delivery.exchange?.reply(encodeBody(agent));
    },
    changes: async (delivery) => {
      const { sinceRevision } = decodeBody<{ sinceRevision: number }>(delivery.body);
      for await (const chunk of handlers.changes(sinceRevision)) await delivery.exchange?.write(encodeBody(chunk));
      delivery.exchange?.end();
    },
  };
  return (Object.keys(serve) as Operation[]).flatMap((operation) => [
    bus.subscribe(subjects.registry(operation), serve[operation], { queue: 'registry' }),
    // In no queue group: one would deliver to a single place of several where this node is believed to be.
    ...(nodeId === undefined ? [] : [bus.subscribe(subjects.registryNode(nodeId, operation), serve[operation])]),
  ]);
}

function withDefaults(options: CallOptions, headers = options.headers): RequestOptions {
  return {
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    ...(headers === undefined ? {} : { headers }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
}
