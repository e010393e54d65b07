import type { RegistryEvent } from '@patchbay/agent-card';
import type { Bus } from '@patchbay/bus';
import type { Clock } from '@patchbay/core';
import type { Membership } from '@patchbay/directory';
import type { LivenessClient } from '@patchbay/service-api';
import type { LivenessStore, SweepOutcome } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';
import type { BeatWriter } from './beat-writer.js';
import type { DeafTimes } from './deaf-times.js';

/** Time that another node has for writing its beats. */
const FLUSH_TIMEOUT_MS = 5_000;
/** After the bus came back the members are not known again before their beats were heard. */
const BUS_SETTLES_MS = 3_000;
const RETRY_MS = 5_000;

/** What {@link Sweeper} needs. */
export interface SweeperOptions {
  readonly bus: Pick<Bus, 'isUp' | 'onStatus'>;
  readonly store: Pick<LivenessStore, 'sweep'>;
  readonly membership: Pick<Membership, 'members' | 'nodeId'>;
  readonly liveness: Pick<LivenessClient, 'flushBeats'>;
  readonly beats: Pick<BeatWriter, 'flush'>;
  readonly deafTimes: Pick<DeafTimes, 'withinMs'>;
  /** > 0. */
  readonly ttlMs: number;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told of the events of the agents that were removed. */
  readonly onExpired: (events: readonly RegistryEvent[]) => void;
}

/** What a sweep did; `skipped` when not everybody could be heard, and nobody was removed. */
export type SweepReport = SweepOutcome | { readonly kind: 'skipped'; readonly why: string };

/**
 * Removes agents that were silent for longer than the TTL. Every node sweeps, the database lets one at a time; no
 * sweep happens unless every live node has written the beats it answered.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<SweepReport> | undefined;
  #busUpSinceMs = -Infinity;
  #isStopped = false;
  /** Why the last sweep did not happen; each reason is logged once. */
  #trouble: string | undefined;
  readonly #stopWatching: () => void;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#stopWatching = options.bus.onStatus((isUp) => {
      if (isUp) this.#busUpSinceMs = options.clock.monotonicMs();
    });
    this.#schedule(options.intervalMs);
  }

  /** Sweeps now, or joins the sweep that runs. Never throws. */
  async sweep(): Promise<SweepReport> {
    this.#sweeping ??= this.#sweepOnce().finally(() => (this.#sweeping = undefined));
    return await this.#sweeping;
  }

  /** Resolves when the sweep in hand is over. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#stopWatching();
    await this.#sweeping;
  }

  #schedule(inMs: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      void this.sweep().then(({ kind }) => {
        const { intervalMs } = this.#options;
        this.#schedule(kind === 'skipped' ? Math.min(RETRY_MS, intervalMs) : intervalMs);
      });
    }, inMs).unref();
  }

  async #sweepOnce(): Promise<SweepReport> {
    const { store, membership, deafTimes, ttlMs, intervalMs, logger, onExpired } = this.#options;
    try {
      const why = this.#busTrouble() ?? (await this.#flushEverybody()) ?? this.#busTrouble();
      if (why !== undefined) return this.#skip(why);
      const nodeId = membership.nodeId;
      const outcome = await store.sweep({ nodeId, ttlMs, intervalMs, deafMs: deafTimes.withinMs(ttlMs) });
      this.#trouble = undefined;
      if (outcome.kind === 'grace') {
        logger.info({ until: new Date(outcome.untilMs).toISOString() }, 'nobody expires yet: sweeps were missed');
      }
      if (outcome.kind === 'swept' && outcome.expired.length > 0) {
        logger.info({ expired: outcome.expired.map((event) => event.agentId).slice(0, 100) }, 'agents expired');
        onExpired(outcome.expired);
      }
      return outcome;
    } catch (error) {
      return this.#skip(error instanceof Error ? error.message : String(error), error);
    }
  }

  #skip(why: string, error?: unknown): SweepReport {
    if (why !== this.#trouble) {
      this.#options.logger.warn(
        { why, err: error },
        'no agent expires now: not every heartbeat could be heard and kept',
      );
    }
    this.#trouble = why;
    return { kind: 'skipped', why };
  }

  #busTrouble(): string | undefined {
    const { bus, clock } = this.#options;
    if (!bus.isUp) return 'the bus is down';
    return clock.monotonicMs() - this.#busUpSinceMs < BUS_SETTLES_MS ? 'the bus has only just come back' : undefined;
  }

  /** @returns who could not write its beats */
  async #flushEverybody(): Promise<string | undefined> {
    const { membership, liveness, beats } = this.#options;
    await beats.flush();
    const others = membership
      .members()
      .map(({ beat }) => beat)
      .filter((beat) => beat.node_id !== membership.nodeId && beat.services.includes('liveness'));
    const flushes = others.map((beat) => liveness.flushBeats(beat.node_id, { timeoutMs: FLUSH_TIMEOUT_MS }));
    const results = await Promise.allSettled(flushes);
    const failed = others.filter((_, index) => results[index]?.status !== 'fulfilled');
    if (failed.length === 0) return undefined;
    return `not written: the heartbeats held by ${failed.map((beat) => beat.node_id).join(', ')}`;
  }
}
