import type { Clock } from '@patchbay/core';

const LOOK_EVERY_MS = 250;
/** A look that comes later than this means that the process stood still. */
const STILL_MS = 1_000;
/** So long after that messages may be old ones that were waiting. */
const AFTERMATH_MS = 1_000;

/**
 * Knows whether this process has just stood still (stopped, or starved of its processor): what it reads then may have
 * been waiting for as long.
 */
export class Stillness {
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  #lookedAtMs: number;
  #doubtfulUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lookedAtMs = clock.monotonicMs();
    this.#timer = setInterval(() => {
      this.isRecent();
      this.#lookedAtMs = clock.monotonicMs();
    }, LOOK_EVERY_MS).unref();
  }

  /** Hot path. After a stop messages are read before any timer runs, so every message looks. */
  isRecent(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lookedAtMs > LOOK_EVERY_MS + STILL_MS) this.#doubtfulUntilMs = nowMs + AFTERMATH_MS;
    return nowMs < this.#doubtfulUntilMs;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
