import type { Bus, Subjects, Subscription } from '@patchbay/bus';
import type { Membership, NodeBeat } from '@patchbay/directory';
import { decodeBody } from '@patchbay/service-api';
import type { ReplicaAck } from '@patchbay/service-api';
import type { Logger } from '@patchbay/telemetry';

/** What {@link AckTracker} needs. */
export interface AckTrackerOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly membership: Pick<Membership, 'nodeId' | 'members' | 'onBeat' | 'onChange'>;
  readonly logger: Logger;
}

interface Follower {
  incarnation: string;
  revision: number;
  /** It did not follow in time: nobody waits for it until it has reached this revision. */
  lagsBehind: number;
}

interface Waiter {
  readonly revision: number;
  readonly finish: () => void;
}

/** Knows how far every other node's directory has come, and lets a write wait for them. */
export class AckTracker {
  readonly #options: AckTrackerOptions;
  readonly #followers = new Map<string, Follower>();
  readonly #waiters = new Set<Waiter>();
  readonly #subscription: Subscription;
  readonly #endings: (() => void)[];

  constructor(options: AckTrackerOptions) {
    this.#options = options;
    const { bus, subjects, membership } = options;
    this.#subscription = bus.subscribe(subjects.acks('*'), (delivery) => {
      const { nodeId, revision } = decodeBody<ReplicaAck>(delivery.body);
      const follower = this.#follower(nodeId);
      follower.revision = Math.max(follower.revision, revision);
      this.#check();
    });
    this.#endings = [membership.onBeat((beat) => this.#hear(beat)), membership.onChange(() => this.#check())];
  }

  /**
   * Resolves when every live node that is not suspect has applied `revision`, at the latest after `withinMs`. A node
   * that missed that is not waited for again until it has caught up: it must not slow down every write.
   */
  waitFor(revision: number, withinMs: number): Promise<void> {
    if (this.#missing(revision).length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter: Waiter = {
        revision,
        finish: () => {
          clearTimeout(timer);
          this.#waiters.delete(waiter);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        for (const nodeId of this.#missing(revision)) {
          this.#follower(nodeId).lagsBehind = revision;
          this.#options.logger.warn({ member: nodeId, revision }, 'a node does not follow the registry in time');
        }
        waiter.finish();
      }, withinMs);
      this.#waiters.add(waiter);
    });
  }

  /** Lets everybody who waits go. Idempotent. */
  async stop(): Promise<void> {
    for (const end of this.#endings.splice(0)) end();
    for (const waiter of this.#waiters) waiter.finish();
    await this.#subscription.drain(0);
  }

  #missing(revision: number): string[] {
    const { membership } = this.#options;
    return membership
      .members()
      .filter(({ beat, isSuspect }) => {
        if (isSuspect || beat.node_id === membership.nodeId) return false;
        const follower = this.#follower(beat.node_id);
        return follower.revision < revision && follower.revision >= follower.lagsBehind;
      })
      .map(({ beat }) => beat.node_id);
  }

  #check(): void {
    for (const waiter of this.#waiters) {
      if (this.#missing(waiter.revision).length === 0) waiter.finish();
    }
  }

  #hear(beat: NodeBeat): void {
    const follower = this.#follower(beat.node_id);
    const isRestarted = follower.incarnation !== '' && follower.incarnation !== beat.incarnation;
    follower.incarnation = beat.incarnation;
    follower.revision = isRestarted ? beat.applied_revision : Math.max(follower.revision, beat.applied_revision);
    this.#check();
  }

  #follower(nodeId: string): Follower {
    let follower = this.#followers.get(nodeId);
    if (follower === undefined) {
      follower = { incarnation: '', revision: 0, lagsBehind: 0 };
      this.#followers.set(nodeId, follower);
    }
    return follower;
  }
}
