import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** How one attempt of a caller ended. */
export type Outcome =
  /** As it should. */
  | { readonly kind: 'answered' }
  /** An error that the gateway or the agent worded: what it is called, and its text. */
  | { readonly kind: 'error'; readonly code: string; readonly message: string }
  /** The connection was refused or cut: the process at its other end is dead. */
  | { readonly kind: 'dropped'; readonly message: string }
  /** No answer within the time of the call and the allowance. There must never be one. */
  | { readonly kind: 'hung' }
  /** An answer to something else, or one that makes no sense. There must never be one. */
  | { readonly kind: 'wrong'; readonly message: string };

/** One attempt of a caller. Times are of `performance.now()`. */
export interface LoadRecord {
  /** What was done, such as `call` or `register`. */
  readonly doing: string;
  /** Base URL of the front that it went through. */
  readonly front: string;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly outcome: Outcome;
}

/** Somebody who does the same thing again and again. */
export interface LoadCaller {
  readonly doing: string;
  readonly front: string;
  /** Milliseconds that an attempt may take by its own account. */
  readonly timeoutMs: number;
  /** Makes one attempt; what it throws counts as `dropped`, after an abort as `hung`. */
  readonly attempt: (signal: AbortSignal) => Promise<Outcome>;
}

/** Which records are meant; absent members mean all. */
export interface LoadFilter {
  readonly doing?: string;
  readonly front?: string;
  /** Started at this time or later. */
  readonly fromMs?: number;
  /** Started before this time. */
  readonly toMs?: number;
}

/** What a call may take beyond its own timeout. */
const ALLOWANCE_MS = 1_000;

/**
 * A steady load that records how every attempt ended. Each caller waits for its answer and then for the rest of its
 * interval, so the rate is known and a machine that is busy does not change it.
 */
export class LoadRecorder implements AsyncDisposable {
  readonly records: LoadRecord[] = [];
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];

  constructor() {
    // Every caller's rest listens to it.
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Starts callers; each attempts every `everyMs`. */
  add(callers: readonly LoadCaller[], everyMs: number): this {
    for (const [index, caller] of callers.entries()) {
      this.#loops.push(this.#run(caller, everyMs, (index * everyMs) / callers.length));
    }
    return this;
  }

  /** Ends the load; resolves when every attempt in hand has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  select({ doing, front, fromMs = -Infinity, toMs = Infinity }: LoadFilter = {}): LoadRecord[] {
    return this.records.filter(
      (record) =>
        (doing === undefined || record.doing === doing) &&
        (front === undefined || record.front === front) &&
        record.startedMs >= fromMs &&
        record.startedMs < toMs,
    );
  }

  /** Attempts that did not end as they should. */
  failures(filter: LoadFilter = {}): LoadRecord[] {
    return this.select(filter).filter(({ outcome }) => outcome.kind !== 'answered');
  }

  /** Attempts that hung or were answered with something else: what must not happen whatever fails. */
  scandals(): LoadRecord[] {
    return this.records.filter(({ outcome }) => outcome.kind === 'hung' || outcome.kind === 'wrong');
  }

  /** Answers a second over the last `overMs`. */
  ratePerSecond(overMs: number, filter: Omit<LoadFilter, 'fromMs' | 'toMs'> = {}): number {
    const nowMs = performance.now();
    const answered = this.select(filter).filter(
      ({ endedMs, outcome }) => outcome.kind === 'answered' && endedMs >= nowMs - overMs,
    );
    return (answered.length * 1_000) / overMs;
  }

  /** How often each outcome came, by what was done: for messages of failed tests, and for people. */
  summary(filter: LoadFilter = {}): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { doing, outcome } of this.select(filter)) {
      const word = `${doing}: ${outcome.kind === 'error' ? outcome.code : outcome.kind}`;
      counts[word] = (counts[word] ?? 0) + 1;
    }
    return counts;
  }

  async #run(caller: LoadCaller, everyMs: number, delayMs: number): Promise<void> {
    const { signal } = this.#stopping;
    await rest(delayMs, signal);
    while (!signal.aborted) {
      const startedMs = performance.now();
      const limit = AbortSignal.timeout(caller.timeoutMs + ALLOWANCE_MS);
      const outcome = await caller.attempt(limit).catch((error: unknown) => explain(error, limit));
      const { doing, front } = caller;
      const endedMs = performance.now();
      this.records.push({ doing, front, startedMs, endedMs, outcome });
      await rest(startedMs + everyMs - endedMs, signal);
    }
  }
}

function explain(error: unknown, limit: AbortSignal): Outcome {
  if (limit.aborted) return { kind: 'hung' };
  const { message, cause } = error as Error;
  return { kind: 'dropped', message: cause instanceof Error ? `${message}: ${cause.message}` : message };
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => undefined);
}
