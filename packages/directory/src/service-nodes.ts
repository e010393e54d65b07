import { systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import type { Membership } from './membership.js';
import type { NodeBeat } from './node-beat.js';

/**
 * A node that fell silent may be stopped rather than dead, and keeps its place in the queue groups until the NATS
 * server drops it: with a stock server's pings after 6 minutes.
 */
const HAUNTS_MS = 600_000;
/** Stands among the lost nodes for the queue group itself; no node has this name. */
const QUEUE_GROUP = '';

/** What {@link ServiceNodes} needs. */
export interface ServiceNodesOptions {
  readonly membership: Pick<Membership, 'members' | 'onChange' | 'onTick'>;
  /** Whether a node is one of those meant. */
  readonly serves: (beat: NodeBeat) => boolean;
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
  readonly #endings: (() => void)[];
  #known = new Set<string>();
  /** Nodes that are gone without having said so, and when that no longer matters. */
  readonly #lost = new Map<string, number>();
  #isImpaired = false;
  #turn = 0;

  constructor(options: ServiceNodesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { membership } = options;
    this.#endings = [membership.onChange(() => this.#look()), membership.onTick(() => this.#forget())];
    this.#look();
  }

  /** The queue group holds one that does not answer, or may. Hot path. */
  get isImpaired(): boolean {
    return this.#isImpaired;
  }

  /** Ids of the nodes that can be addressed, beginning with another one each time. */
  inTurn(): string[] {
    return this.#rotated().map((beat) => beat.node_id);
  }

  /** Ids of the nodes that can be addressed, those first that have the most free slots. */
  mostFreeFirst(): string[] {
    return this.#rotated()
      .toSorted((a, b) => b.free_slots - a.free_slots)
      .map((beat) => beat.node_id);
  }

  /** As `inTurn` while the queue group is impaired; empty while it is not. */
  byName(): string[] {
    return this.#isImpaired ? this.inTurn() : [];
  }

  /**
   * Notes that a request to the queue group met nobody: it may hold somebody who is not there any more, such as the
   * members that a stopped NATS server still announces to the others.
   */
  noteLoss(): void {
    this.#lost.set(QUEUE_GROUP, this.#clock.monotonicMs() + HAUNTS_MS);
    this.#isImpaired = true;
  }

  /** Stops to follow the membership. Idempotent. */
  close(): void {
    for (const end of this.#endings.splice(0)) end();
  }

  #rotated(): NodeBeat[] {
    const { membership, serves } = this.#options;
    const beats = membership
      .members()
      .filter(({ beat, isSuspect }) => serves(beat) && !isSuspect && !beat.draining)
      .map(({ beat }) => beat);
    const first = this.#turn++ % Math.max(1, beats.length);
    return [...beats.slice(first), ...beats.slice(0, first)];
  }

  #look(): void {
    const members = this.#options.membership.members();
    const present = new Set(members.map(({ beat }) => beat.node_id));
    for (const nodeId of this.#known) {
      if (!present.has(nodeId)) this.#lost.set(nodeId, this.#clock.monotonicMs() + HAUNTS_MS);
    }
    for (const nodeId of present) this.#lost.delete(nodeId);
    const serving = members.filter(({ beat }) => this.#options.serves(beat));
    // One that leaves has taken itself out of the queue group.
    const staying = serving.filter(({ beat }) => !beat.draining);
    this.#known = new Set(staying.map(({ beat }) => beat.node_id));
    this.#isImpaired = this.#lost.size > 0 || serving.some(({ isSuspect }) => isSuspect);
  }

  #forget(): void {
    if (this.#lost.size === 0) return;
    const nowMs = this.#clock.monotonicMs();
    for (const [nodeId, untilMs] of this.#lost) if (untilMs <= nowMs) this.#lost.delete(nodeId);
    if (this.#lost.size === 0) this.#look();
  }
}
