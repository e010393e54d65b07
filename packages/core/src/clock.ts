/** The two clocks that code may read. Injected, so that tests own time. */
export interface Clock {
  /** Wall clock in milliseconds since 1970; may jump. For timestamps only. */
  nowMs(): number;
  /** Monotonic clock in milliseconds from an arbitrary start. For every deadline and duration. */
  monotonicMs(): number;
}

/** The machine's clocks. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** A clock that stands still until it is told to move; for tests. */
export class ManualClock implements Clock {
  #nowMs: number;
  #monotonicMs = 0;

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  /** Moves both clocks on by `ms`. */
  advance(ms: number): void {
    this.#nowMs += ms;
    this.#monotonicMs += ms;
  }

  /** Lets the wall clock alone jump by `ms`, as a clock correction does. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }
}
