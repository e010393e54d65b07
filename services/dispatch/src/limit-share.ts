import type { Clock } from '@patchbay/core';
import { isDispatching } from '@patchbay/directory';
import type { Membership, NodeBeat } from '@patchbay/directory';
import type { SlotShare } from './concurrency-limit.js';
import { epochOf, shareAt, sortMembers } from './share-epoch.js';

/** A node that was not heard for 3 s loses its share to the others; one that stood still so long gives it up itself. */
const STALL_MS = 1_500;
/** A joining node serves without a share, too, when the others do not agree within this time. */
const AGREE_WITHIN_MS = 3_000;

/** What {@link LimitShare} needs. */
export interface LimitShareOptions {
  readonly membership: Pick<
    Membership,
    'nodeId' | 'listeningMs' | 'members' | 'report' | 'onBeat' | 'onChange' | 'onTick'
  >;
  /** Slots of every agent in the whole cluster. */
  readonly limit: number;
  /**
   * So long it listens for others before it takes a share, the last third while they hear that it will. Milliseconds;
   * 0 where there can be no others.
   */
  readonly settleMs: number;
  readonly clock: Clock;
}

/**
 * This node's share of a limit that all nodes which dispatch have together.
 *
 * A share shrinks at once when another member is seen, and grows only when every member that is seen announces the same
 * set of members: each has then shrunk its own. So the shares of nodes that see each other never exceed the limit; in a
 * partition it holds on each side. A suspect and a draining member keep their shares until they are gone or done.
 */
export class LimitShare implements SlotShare {
  /** Resolves when the first share is settled, at the latest after 3 s. */
  readonly ready: Promise<void>;
  readonly #options: LimitShareOptions;
  readonly #endings: (() => void)[];
  readonly #startedMs: number;
  #held = 0;
  #epoch = 0;
  #rejoins = 0;
  #lastTickMs: number;
  #isAlone = false;
  #isSettled = false;
  #isReady = false;
  #tellReady: () => void = () => undefined;

  constructor(options: LimitShareOptions) {
    this.#options = options;
    const { membership, clock } = options;
    this.#startedMs = this.#lastTickMs = clock.monotonicMs();
    this.ready = new Promise((resolve) => {
      this.#tellReady = resolve;
    });
    this.#endings = [
      membership.onBeat(() => this.#look()),
      membership.onChange(() => this.#look()),
      membership.onTick(() => this.#tick()),
    ];
    this.#look();
  }

  /** Whether `ready` has resolved. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Slots of every agent. Hot path. */
  get size(): number {
    // The others may have shared out what this node had, and a call may come before the next tick.
    if (!this.#isAlone && this.#hasStoodStill()) this.#rejoin();
    return this.#held;
  }

  /** Gives the share up: this node has no calls in hand and takes none. Idempotent. */
  leave(): void {
    for (const end of this.#endings.splice(0)) end();
    this.#held = 0;
    this.#isAlone = true;
    this.#options.membership.report({ epoch: 0, free_slots: 0 });
    this.#becomeReady();
  }

  #tick(): void {
    if (!this.#isAlone && this.#hasStoodStill()) this.#rejoin();
    this.#lastTickMs = this.#options.clock.monotonicMs();
    this.#look();
    if (this.#lastTickMs - this.#startedMs >= AGREE_WITHIN_MS) this.#becomeReady();
  }

  #hasStoodStill(): boolean {
    return this.#options.clock.monotonicMs() - this.#lastTickMs > STALL_MS;
  }

  /** Begins as a new member does. The count makes it a new set: beats of before cannot agree to it. */
  #rejoin(): void {
    this.#lastTickMs = this.#options.clock.monotonicMs();
    this.#held = 0;
    this.#rejoins += 1;
    this.#options.membership.report({ rejoins: this.#rejoins });
    this.#look();
  }

  #look(): void {
    const { membership, limit } = this.#options;
    const members = sortMembers(this.#members());
    const index = members.findIndex((beat) => beat.node_id === membership.nodeId);
    const share = shareAt(limit, index, members.length);
    this.#isAlone = members.length === 1;
    this.#held = Math.min(this.#held, share);
    const epoch = epochOf(members);
    if (epoch !== this.#epoch) {
      this.#epoch = epoch;
      // Said after the share shrank: the others rely on it.
      membership.report({ epoch });
    }
    this.#isSettled ||= this.#hasSettled();
    const isAgreed = members.every((beat, at) => at === index || beat.epoch === epoch);
    if (!this.#isSettled || !isAgreed) return;
    this.#held = share;
    this.#becomeReady();
  }

  /** Of two nodes that begin at the same moment each must have heard that the other does. */
  #hasSettled(): boolean {
    const { membership, settleMs, clock } = this.#options;
    return membership.listeningMs >= settleMs && clock.monotonicMs() - this.#startedMs >= settleMs / 3;
  }

  #members(): NodeBeat[] {
    const { membership } = this.#options;
    const beats = membership.members().map(({ beat }) => beat);
    return beats.filter((beat) => beat.node_id === membership.nodeId || isDispatching(beat));
  }

  #becomeReady(): void {
    this.#isReady = true;
    this.#tellReady();
  }
}
