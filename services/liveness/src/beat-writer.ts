import type { Bus, Subjects } from '@patchbay/bus';
import type { Clock } from '@patchbay/core';
import type { Directory } from '@patchbay/directory';
import { encodeBody } from '@patchbay/service-api';
import type { BeatBatch } from '@patchbay/service-api';
import type { LivenessStore } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';
import type { BeatBook } from './beat-book.js';
import type { DatabaseClock } from './database-clock.js';
import type { DeafTimes } from './deaf-times.js';

const INTERVAL_MS = 1_000;
/** Beats in one message: some 400 KB with the longest ids. */
const BEATS_PER_MESSAGE = 2_000;

/** What {@link BeatWriter} needs. */
export interface BeatWriterOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly store: Pick<LivenessStore, 'recordBeats'>;
  readonly directory: Pick<Directory, 'touch'>;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly book: BeatBook;
  readonly databaseClock: DatabaseClock;
  readonly deafTimes: DeafTimes;
}

/** Once a second writes the beats that this node answered to the database, and tells the other nodes. */
export class BeatWriter {
  readonly #options: BeatWriterOptions;
  readonly #timer: NodeJS.Timeout;
  #lastTickMs: number;
  #writing: Promise<void> | undefined;
  #isStoreUp = true;

  constructor(options: BeatWriterOptions) {
    this.#options = options;
    this.#lastTickMs = options.clock.monotonicMs();
    this.#timer = setInterval(() => this.tick(), INTERVAL_MS).unref();
    this.tick();
  }

  /** What happens once a second; for tests that own time. */
  tick(): void {
    const { clock, deafTimes, book, databaseClock } = this.#options;
    const nowMs = clock.monotonicMs();
    const lateMs = nowMs - this.#lastTickMs - INTERVAL_MS;
    if (lateMs > 0) deafTimes.noteStall(lateMs);
    this.#lastTickMs = nowMs;
    this.tell();
    if (this.#writing !== undefined || (book.unwritten === 0 && !databaseClock.isStale)) return;
    this.#start().catch(() => undefined); // logged, and tried again at the next tick
  }

  /**
   * Resolves when every beat answered so far is in the database.
   * @throws PatchbayError `store_unavailable`; the beats are kept
   */
  async flush(): Promise<void> {
    // A write in hand may have started before the last of them.
    while (this.#writing !== undefined) await this.#writing.catch(() => undefined);
    await this.#start();
  }

  /** Publishes the beats that the other nodes do not know yet. */
  tell(): void {
    const { bus, subjects, directory, nodeId, book, logger } = this.#options;
    if (!bus.isUp) return; // told when it is back
    const beats = book.takeUntold();
    // An agent that the directory did not know when it beat may be there now.
    for (const { agentId, lastSeenMs } of beats) directory.touch(agentId, lastSeenMs);
    try {
      for (let from = 0; from < beats.length; from += BEATS_PER_MESSAGE) {
        const batch: BeatBatch = { nodeId, beats: beats.slice(from, from + BEATS_PER_MESSAGE) };
        bus.publish(subjects.beats(nodeId), encodeBody(batch));
      }
    } catch (error) {
      logger.warn({ err: error }, 'could not tell the other nodes of heartbeats');
    }
  }

  /** Ends the timer; the last flush is the caller's. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #start(): Promise<void> {
    const writing = this.#write().finally(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    this.#writing = writing;
    return writing;
  }

  async #write(): Promise<void> {
    const { store, clock, book, databaseClock, deafTimes, logger } = this.#options;
    const beats = book.takeUnwritten();
    const askedAtMs = clock.monotonicMs();
    try {
      databaseClock.noteReading(await store.recordBeats(beats), askedAtMs);
      deafTimes.end('database');
      if (!this.#isStoreUp) logger.info({ beats: beats.length }, 'heartbeats reach the database again');
      this.#isStoreUp = true;
    } catch (error) {
      book.putBack(beats);
      deafTimes.begin('database', askedAtMs);
      if (this.#isStoreUp)
        logger.warn({ err: error, beats: book.unwritten }, 'heartbeats are kept until the database is back');
      this.#isStoreUp = false;
      throw error;
    }
  }
}
