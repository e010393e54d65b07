import type { Clock } from '@patchbay/core';

/** Shorter outages are what a TTL allows for anyway. */
const NOTICED_MS = 5_000;

/** Why beats could not be heard or kept. */
export type DeafCause = 'bus' | 'database';

interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * When this node could not hear beats, or not keep them: no bus, no database, or the process standing still. Such
 * times are added to every TTL, so that nobody expires because we were away.
 */
export class DeafTimes {
  readonly #clock: Clock;
  readonly #open = new Map<DeafCause, number>();
  #past: Interval[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param sinceMs On the monotonic clock. Default: now. */
  begin(cause: DeafCause, sinceMs = this.#clock.monotonicMs()): void {
    if (!this.#open.has(cause)) this.#open.set(cause, sinceMs);
  }

  end(cause: DeafCause): void {
    const fromMs = this.#open.get(cause);
    if (fromMs === undefined) return;
    this.#open.delete(cause);
    this.#add({ fromMs, toMs: this.#clock.monotonicMs() });
  }

  /** The process stood still for `ms`, until now. */
  noteStall(ms: number): void {
    const toMs = this.#clock.monotonicMs();
    this.#add({ fromMs: toMs - ms, toMs });
  }

  /** How much longer than `ttlMs` an agent may have been silent, because it could not be heard. */
  withinMs(ttlMs: number): number {
    const nowMs = this.#clock.monotonicMs();
    const open = [...this.#open.values()]
      .map((fromMs) => ({ fromMs, toMs: nowMs }))
      .filter((interval) => lengthOf(interval) > NOTICED_MS);
    // From the newest back: each deaf time reaches further into the past, where there may be another.
    let deafMs = 0;
    for (const interval of merge([...this.#past, ...open]).toReversed()) {
      if (nowMs - interval.toMs > ttlMs + deafMs) break;
      deafMs += lengthOf(interval);
    }
    this.#past = this.#past.filter(({ toMs }) => nowMs - toMs <= ttlMs + deafMs);
    return deafMs;
  }

  #add(interval: Interval): void {
    if (lengthOf(interval) > NOTICED_MS) this.#past = merge([...this.#past, interval]);
  }
}

/** Overlapping intervals as one, in order of time: a bus and a database that were away together count once. */
function merge(intervals: readonly Interval[]): Interval[] {
  const merged: Interval[] = [];
  for (const next of intervals.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = merged.at(-1);
    if (last === undefined || next.fromMs > last.toMs) merged.push(next);
    else merged[merged.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, next.toMs) };
  }
  return merged;
}

function lengthOf({ fromMs, toMs }: Interval): number {
  return toMs - fromMs;
}
