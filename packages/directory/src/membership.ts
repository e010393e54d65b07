import type { Bus, Subjects, Subscription } from '@patchbay/bus';
import { newCallId, systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import { decodeBody, encodeBody } from '@patchbay/service-api';
import type { Logger } from '@patchbay/telemetry';
import type { Directory } from './directory.js';
import { isDispatching } from './node-beat.js';
import type { Member, NodeBeat, NodeReport } from './node-beat.js';

const BEAT_INTERVAL_MS = 1_000;
const TICK_INTERVAL_MS = 500;
/** A tick that is later than this means that the process stood still. */
const STALL_MS = 500;
const SUSPECT_AFTER_MS = 2_000;
const GONE_AFTER_MS = 3_000;

/** What {@link Membership} needs. */
export interface MembershipOptions {
  readonly bus: Pick<Bus, 'publish' | 'subscribe' | 'isUp'>;
  readonly subjects: Subjects;
  readonly directory: Directory;
  /** `[a-z0-9-]{1,63}`, unique in the cluster. */
  readonly nodeId: string;
  readonly version: string;
  /** Names of the services that this node runs. */
  readonly services: readonly string[];
  readonly logger: Logger;
  /** Another node has this node's id and is the earlier one: this node must stop. Called once. */
  readonly onConflict: (other: NodeBeat) => void;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

interface Heard {
  readonly beat: NodeBeat;
  readonly atMs: number;
  readonly isSuspect: boolean;
}

/**
 * Which nodes are there. Publishes this node's beat once a second and listens to the others': one that is silent for
 * 2 s is suspect, for 3 s gone. This node is always a member.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #clock: Clock;
  readonly #incarnation = newCallId();
  readonly #others = new Map<string, Heard>();
  readonly #beatListeners = new Set<(beat: NodeBeat) => void>();
  readonly #changeListeners = new Set<() => void>();
  readonly #tickListeners = new Set<() => void>();
  #report: NodeReport = { epoch: 0, draining: false, free_slots: 0, store: true };
  #subscription: Subscription | undefined;
  #timer: NodeJS.Timeout | undefined;
  #startedMs: number | undefined;
  #lastTickMs = 0;
  #nextBeatMs = 0;
  #isConflictTold = false;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get nodeId(): string {
    return this.#options.nodeId;
  }

  /** Whether this node runs the service of that name. */
  runs(service: string): boolean {
    return this.#options.services.includes(service);
  }

  /** Starts to listen and to beat. Call once. */
  start(): void {
    const { bus, subjects } = this.#options;
    this.#subscription = bus.subscribe(subjects.node('*'), (delivery) => this.#hear(decodeBody(delivery.body)));
    this.#startedMs = this.#lastTickMs = this.#clock.monotonicMs();
    this.#timer = setInterval(() => this.#tick(), TICK_INTERVAL_MS).unref();
    this.#publish();
  }

  /** How long it has listened to the others, milliseconds; 0 before the start. */
  get listeningMs(): number {
    return this.#startedMs === undefined ? 0 : this.#clock.monotonicMs() - this.#startedMs;
  }

  /** Stops beating; the others take this node for gone after 3 s. Idempotent. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#subscription?.drain(0);
  }

  /** Changes what this node says of itself; said at once. */
  report(change: Partial<NodeReport>): void {
    const report = { ...this.#report, ...change };
    const isNews = report.draining !== this.#report.draining || report.epoch !== this.#report.epoch;
    this.#report = report;
    if (isNews && this.#timer !== undefined) this.#publish();
  }

  /** The nodes that are there, this one first, suspects included. */
  members(): Member[] {
    const others = [...this.#others.values()].map(({ beat, isSuspect }) => ({ beat, isSuspect }));
    return [{ beat: this.#ownBeat(), isSuspect: false }, ...others];
  }

  /** Calls `listener` for every beat of another node; returns the way to stop that. */
  onBeat(listener: (beat: NodeBeat) => void): () => void {
    this.#beatListeners.add(listener);
    return () => this.#beatListeners.delete(listener);
  }

  /**
   * Calls `listener` when a node comes, restarts, begins or ends to dispatch, drains, becomes suspect, recovers or goes;
   * returns the way to stop that.
   */
  onChange(listener: () => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  /** Calls `listener` twice a second, before this node's beat goes out; returns the way to stop that. */
  onTick(listener: () => void): () => void {
    this.#tickListeners.add(listener);
    return () => this.#tickListeners.delete(listener);
  }

  #hear(beat: NodeBeat): void {
    if (beat.node_id === this.#options.nodeId) {
      this.#hearOwnId(beat);
      return;
    }
    const known = this.#others.get(beat.node_id);
    // A beat of an earlier run may still be under way after a restart.
    if (known !== undefined && known.beat.incarnation > beat.incarnation) return;
    this.#others.set(beat.node_id, { beat, atMs: this.#clock.monotonicMs(), isSuspect: false });
    for (const listener of this.#beatListeners) listener(beat);
    if (known?.beat.incarnation !== beat.incarnation) {
      this.#options.logger.info({ member: beat.node_id, services: beat.services }, 'a node joined');
      this.#changed();
    } else if (
      known.isSuspect ||
      known.beat.draining !== beat.draining ||
      isDispatching(known.beat) !== isDispatching(beat)
    ) {
      this.#changed();
    }
  }

  /** Of two nodes with one id the later exits; ULIDs sort by the time they were made. */
  #hearOwnId(beat: NodeBeat): void {
    if (beat.incarnation >= this.#incarnation || this.#isConflictTold) return;
    this.#isConflictTold = true;
    this.#options.logger.error(
      { other_incarnation: beat.incarnation },
      `another node has the id ${beat.node_id}; give each node its own PATCHBAY_NODE_ID`,
    );
    this.#options.onConflict(beat);
  }

  #tick(): void {
    const nowMs = this.#clock.monotonicMs();
    // While this process stood still it could hear nobody: that is no silence of theirs.
    const lateMs = nowMs - this.#lastTickMs - TICK_INTERVAL_MS;
    const deafMs = lateMs > STALL_MS ? lateMs : 0;
    this.#lastTickMs = nowMs;
    let isChanged = false;
    for (const [nodeId, heard] of this.#others) {
      // Some may have been heard since.
      const atMs = Math.min(nowMs, heard.atMs + deafMs);
      const isSuspect = nowMs - atMs >= SUSPECT_AFTER_MS;
      if (nowMs - atMs >= GONE_AFTER_MS) {
        this.#others.delete(nodeId);
        this.#options.logger.warn({ member: nodeId }, 'a node is gone');
      } else {
        this.#others.set(nodeId, { beat: heard.beat, atMs, isSuspect });
        if (isSuspect === heard.isSuspect) continue;
      }
      isChanged = true;
    }
    if (isChanged) this.#changed();
    for (const listener of this.#tickListeners) listener();
    // Half a tick of tolerance: timers are not exact, and a beat must not slip by a whole tick.
    if (nowMs >= this.#nextBeatMs - TICK_INTERVAL_MS / 2) this.#publish();
  }

  #publish(): void {
    const { bus, subjects, nodeId, logger } = this.#options;
    if (!bus.isUp) return;
    this.#nextBeatMs = this.#clock.monotonicMs() + BEAT_INTERVAL_MS;
    try {
      bus.publish(subjects.node(nodeId), encodeBody(this.#ownBeat()));
    } catch (error) {
      logger.warn({ err: error }, 'could not publish the beat of this node');
    }
  }

  #ownBeat(): NodeBeat {
    const { nodeId, version, services, directory, bus } = this.#options;
    return {
      v: 1,
      node_id: nodeId,
      incarnation: this.#incarnation,
      version,
      services,
      applied_revision: directory.revision,
      ...this.#report,
      bus: bus.isUp,
    };
  }

  #changed(): void {
    for (const listener of this.#changeListeners) listener();
  }
}
