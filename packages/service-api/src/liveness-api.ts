import type { Bus, Handler, RequestOptions, Subjects, Subscription } from '@patchbay/bus';
import { decodeBody, encodeBody } from './json-body.js';
import { askService, NO_ROSTER } from './service-subject.js';
import type { ServiceRoster } from './service-subject.js';
import type { CallOptions } from './registry-api.js';

/** Answer to a heartbeat. */
export interface HeartbeatReply {
  readonly agentId: string;
  /** Milliseconds since 1970 on the database's clock; grows with every beat. */
  readonly lastSeenMs: number;
}

/** Beats that one node answered since its last batch. */
export interface BeatBatch {
  readonly nodeId: string;
  readonly beats: readonly HeartbeatReply[];
}

/** The liveness service as its callers see it. */
export interface LivenessHandlers {
  /** Notes a sign of life; answered from memory. @throws PatchbayError agent_not_found */
  heartbeat(agentId: string): Promise<HeartbeatReply>;
}

const DEFAULT_TIMEOUT_MS = 5_000;

/** Calls the liveness service over the bus. */
export class LivenessClient {
  readonly #bus: Bus;
  readonly #subjects: Subjects;
  readonly #roster: ServiceRoster;

  /** @param roster Which nodes to ask by name while one does not answer. Default: none, ever. */
  constructor(bus: Bus, subjects: Subjects, roster: ServiceRoster = NO_ROSTER) {
    this.#bus = bus;
    this.#subjects = subjects;
    this.#roster = roster;
  }

  async heartbeat(agentId: string, options: CallOptions = {}): Promise<HeartbeatReply> {
    const body = encodeBody({ agentId });
    const subject = {
      queue: this.#subjects.heartbeat,
      ofNode: (nodeId: string): string => this.#subjects.heartbeatNode(nodeId),
    };
    const asked = { ...withDefaults(options), roster: this.#roster, isRepeatable: true };
    const reply = await askService(this.#bus, subject, body, asked);
    return decodeBody<HeartbeatReply>(reply.body);
  }

  /** Asks one node to write the beats that it still holds; resolves when they are in the database. */
  async flushBeats(nodeId: string, options: CallOptions = {}): Promise<void> {
    await this.#bus.request(this.#subjects.flushBeats(nodeId), encodeBody({}), withDefaults(options));
  }
}

/** Has `flush` called when somebody asks this node to write the beats it still holds; the caller drains it. */
export function serveBeatFlush(bus: Bus, subjects: Subjects, nodeId: string, flush: () => Promise<void>): Subscription {
  return bus.subscribe(subjects.flushBeats(nodeId), async (delivery) => {
    await flush();
    delivery.exchange?.reply(encodeBody({}));
  });
}

/**
 * Serves heartbeats; the caller drains what is returned.
 * @param nodeId Under which name this node is asked when others do not answer. Default: under none.
 */
export function serveLiveness(
  bus: Bus,
  subjects: Subjects,
  handlers: LivenessHandlers,
  nodeId?: string,
): Subscription[] {
  const serve: Handler = async (delivery) => {
    const reply = await handlers.heartbeat(decodeBody<{ agentId: string }>(delivery.body).agentId);
    delivery.exchange?.reply(encodeBody(reply));
  };
  return [
    bus.subscribe(subjects.heartbeat, serve, { queue: 'liveness' }),
    // In no queue group: one would deliver to a single place of several where this node is believed to be.
    ...(nodeId === undefined ? [] : [bus.subscribe(subjects.heartbeatNode(nodeId), serve)]),
  ];
}

function withDefaults(options: CallOptions): RequestOptions {
  return { ...options, timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS };
}
