import type { RegistryEvent } from '@patchbay/agent-card';
import type { Bus, Subjects } from '@patchbay/bus';
import { isAgentId, PatchbayError, systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import type { Directory, DirectoryReplica, Membership } from '@patchbay/directory';
import { LivenessClient, publishEvents, serveBeatFlush, serveLiveness } from '@patchbay/service-api';
import type { HeartbeatReply, RegistryClient } from '@patchbay/service-api';
import type { LivenessStore } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';
import { BeatBook } from './beat-book.js';
import { BeatWriter } from './beat-writer.js';
import { DatabaseClock } from './database-clock.js';
import { DeafTimes } from './deaf-times.js';
import { Sweeper } from './sweeper.js';
import type { SweepReport } from './sweeper.js';

/** What {@link startLiveness} needs. */
export interface LivenessOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly store: LivenessStore;
  readonly directory: Directory;
  readonly replica: DirectoryReplica;
  readonly membership: Membership;
  /** Asked for agents that the directory does not know. */
  readonly registry: Pick<RegistryClient, 'lookup'>;
  readonly nodeId: string;
  /** Agents silent for longer are removed; 0 = never. */
  readonly ttlSeconds: number;
  readonly sweepIntervalSeconds: number;
  readonly logger: Logger;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/** The liveness service of one node, running. */
export interface LivenessService {
  /** Writes the beats that are held; @throws PatchbayError `store_unavailable`, the beats are kept. */
  flush(): Promise<void>;
  /** Sweeps now instead of at the next turn. Nothing happens when the TTL is 0. */
  sweep(): Promise<SweepReport>;
  /**
   * Takes no new heartbeats, finishes those in hand and writes what is held, at the latest after `withinMs`.
   * Idempotent.
   */
  drain(withinMs: number): Promise<void>;
}

const LOOKUP_TIMEOUT_MS = 2_000;

/** Serves heartbeats from memory, writes them in batches, and removes who is silent. Effective when the bus is flushed. */
export function startLiveness(options: LivenessOptions): LivenessService {
  const { bus, subjects, directory, replica, registry, nodeId, ttlSeconds, sweepIntervalSeconds, logger } = options;
  const clock = options.clock ?? systemClock;
  const book = new BeatBook();
  const databaseClock = new DatabaseClock(clock);
  const deafTimes = new DeafTimes(clock);
  const liveness = new LivenessClient(bus, subjects);
  const beats = new BeatWriter({ ...options, clock, book, databaseClock, deafTimes });

  if (!bus.isUp) deafTimes.begin('bus');
  const stopWatching = bus.onStatus((isUp) => {
    if (isUp) deafTimes.end('bus');
    else deafTimes.begin('bus');
  });

  function onExpired(events: readonly RegistryEvent[]): void {
    try {
      publishEvents(bus, subjects, events);
    } catch (error) {
      logger.warn({ err: error }, 'could not publish expiries; the other nodes will fetch them');
    }
    replica.applyLocally(events);
  }
  const sweeper =
    ttlSeconds === 0
      ? undefined
      : new Sweeper({
          ...options,
          clock,
          liveness,
          beats,
          deafTimes,
          ttlMs: ttlSeconds * 1_000,
          intervalMs: sweepIntervalSeconds * 1_000,
          onExpired,
        });

  async function heartbeat(agentId: string): Promise<HeartbeatReply> {
    // The directory may lag behind a registration on another node: then the registry has the word.
    const agent = directory.get(agentId) ?? (isAgentId(agentId) ? await lookup(agentId) : null);
    if (agent === null) throw new PatchbayError('agent_not_found', 'agent not found');
    const knownMs = Math.max(agent.lastSeenMs, book.unwrittenOf(agentId) ?? 0);
    const beat = { agentId, lastSeenMs: Math.max(databaseClock.nowMs(), knownMs + 1) };
    book.note(beat);
    directory.touch(agentId, beat.lastSeenMs);
    return beat;
  }
  const lookup = (agentId: string): ReturnType<RegistryClient['lookup']> =>
    registry.lookup(agentId, { timeoutMs: LOOKUP_TIMEOUT_MS });

  const serving = serveLiveness(bus, subjects, { heartbeat }, nodeId);
  const flushing = serveBeatFlush(bus, subjects, nodeId, () => beats.flush());

  async function drain(withinMs: number): Promise<void> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), withinMs);
    try {
      await Promise.all(serving.map((subscription) => subscription.drain(withinMs)));
      stopWatching();
      beats.stop();
      beats.tell();
      await within(Promise.all([beats.flush(), sweeper?.stop(), flushing.drain(withinMs)]), deadline.signal);
    } catch (error) {
      logger.error({ err: error, beats: book.unwritten }, 'heartbeats of the last seconds were not written');
    } finally {
      clearTimeout(timer);
    }
  }
  let draining: Promise<void> | undefined;
  return {
    flush: () => beats.flush(),
    sweep: async () => (await sweeper?.sweep()) ?? { kind: 'skipped', why: 'the TTL is 0: nobody expires' },
    drain: (withinMs) => (draining ??= drain(withinMs)),
  };
}

/** `work`, unless `signal` aborts first. */
async function within(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  await Promise.race([
    work,
    new Promise((_, reject) => {
      const fail = (): void => reject(new PatchbayError('deadline_exceeded', 'the time to drain is over'));
      if (signal.aborted) fail();
      else signal.addEventListener('abort', fail);
    }),
  ]);
}
