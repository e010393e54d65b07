import { systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import type { Membership, MembershipOptions } from './membership.js';

/**
 * A node that fell silent may be stopped rather than dead, and keeps its place in the queue groups until the NATS
 * server drops it: with a stock server's pings after 6 minutes.
 */
const HAUNTS_MS = 600_000;
/** Stands among the lost nodes for the queue group itself; no node has this name. */
const QUEUE_GROUP = '';

/** What {@link ServiceNodes} needs. */
export interface ServiceNodesOptions {
  readonly membership: Pick<Membership, 'members' | 'onChange'>;
  /** Name of the service. */
  readonly service: MembershipOptions['services'][number];
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/**
 * The nodes that run a service, as its callers look at them: while one of them does not answer, the queue group would
 * give it its share of the requests, and the others have to be addressed by name.
 */
export class ServiceNodes {
  readonly #options: ServiceNodesOptions;
  readonly #clock: Clock;
  readonly #stopWatching: () => void;
  /** Those that were there at the last look, and whether each was about to leave. */
  #known = new Map<string, boolean>();
  /** Nodes that are gone without having said so, and when that no longer matters. */
  readonly #lost = new Map<string, number>();
  #turn = 0;

  constructor(options: ServiceNodesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#stopWatching = options.membership.onChange(() => this.#look());
    this.#look();
  }

  /**
   * Ids of the nodes to ask, beginning with another one each time, while the queue group holds one that does not
   * answer; empty while it holds all that can be asked.
   */
  byName(): string[] {
    const members = this.#members();
    const isImpaired = this.#isHaunted() || members.some(({ isSuspect }) => isSuspect);
    if (!isImpaired) return [];
    const ids = members.filter(({ beat, isSuspect }) => !isSuspect && !beat.draining).map(({ beat }) => beat.node_id);
    const first = this.#turn++ % Math.max(1, ids.length);
    return [...ids.slice(first), ...ids.slice(0, first)];
  }

  /**
   * Notes that a request to the queue group met nobody: it may hold somebody who is not there any more, such as the
   * members that a stopped NATS server still announces to the others.
   */
  noteLoss(): void {
    this.#lost.set(QUEUE_GROUP, this.#clock.monotonicMs() + HAUNTS_MS);
  }

  /** Stops to follow the membership. Idempotent. */
  close(): void {
    this.#stopWatching();
  }

  #members(): ReturnType<Membership['members']> {
    const { membership, service } = this.#options;
    return membership.members().filter(({ beat }) => beat.services.includes(service));
  }

  #look(): void {
    const members = this.#members();
    const present = new Map(members.map(({ beat }) => [beat.node_id, beat.draining]));
    for (const [nodeId, wasLeaving] of this.#known) {
      if (!present.has(nodeId) && !wasLeaving) this.#lost.set(nodeId, this.#clock.monotonicMs() + HAUNTS_MS);
    }
    for (const nodeId of present.keys()) this.#lost.delete(nodeId);
    this.#known = present;
  }

  #isHaunted(): boolean {
    if (this.#lost.size === 0) return false;
    const nowMs = this.#clock.monotonicMs();
    for (const [nodeId, untilMs] of this.#lost) if (untilMs <= nowMs) this.#lost.delete(nodeId);
    return this.#lost.size > 0;
  }
}
