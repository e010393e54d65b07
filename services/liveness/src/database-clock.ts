import type { Clock } from '@patchbay/core';

/** A reading that took longer says too little about the moment it was made. */
const MAX_ROUND_TRIP_MS = 500;
const STALE_AFTER_MS = 30_000;
/** The wall clock moved against the monotonic one by more: it was set, or the machine slept. */
const JUMP_MS = 1_000;

/**
 * The database's clock as this node knows it: its own monotonic clock plus an offset that every reading refreshes. So
 * stamps of one node never go back, and those of all nodes agree to within a round trip.
 */
export class DatabaseClock {
  readonly #clock: Clock;
  #offsetMs: number;
  #readAtMs = -Infinity;
  #wallOffsetMs: number;

  /** Until the first reading the machine's wall clock stands in. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wallOffsetMs = clock.nowMs() - clock.monotonicMs();
    this.#offsetMs = this.#wallOffsetMs;
  }

  /** Milliseconds since 1970, whole. */
  nowMs(): number {
    return Math.floor(this.#clock.monotonicMs() + this.#offsetMs);
  }

  /** Whether the clock should be read again. */
  get isStale(): boolean {
    const wallOffsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    const hasJumped = Math.abs(wallOffsetMs - this.#wallOffsetMs) > JUMP_MS;
    return hasJumped || this.#clock.monotonicMs() - this.#readAtMs > STALE_AFTER_MS;
  }

  /** Takes a reading: what the database said to a question asked at `askedAtMs` on the monotonic clock. */
  noteReading(databaseMs: number, askedAtMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - askedAtMs > MAX_ROUND_TRIP_MS && this.#readAtMs > -Infinity) return;
    this.#offsetMs = databaseMs - (askedAtMs + nowMs) / 2;
    this.#readAtMs = nowMs;
    this.#wallOffsetMs = this.#clock.nowMs() - nowMs;
  }
}
