import type { Clock } from '@patchbay/core';
import type { Logger } from '@patchbay/telemetry';

/** How a part of the node is ended. `withinMs` is what is left until the soft deadline; it may be 0. */
export type CloseStep = (withinMs: number) => Promise<void> | void;

/** How long a shutdown may take. */
export interface ShutdownLimits {
  /** Soft deadline, milliseconds: what is in hand is finished until then. */
  readonly softMs: number;
  /** Milliseconds after the soft deadline, for closing what no longer has anything in hand. Then the rest is left. */
  readonly graceMs: number;
}

/**
 * The one place that closes what a node opened: each part says how when it is opened, and `run` closes them in
 * reverse order. A part that fails or hangs is logged by name and does not keep the others from being closed.
 */
export class Shutdown {
  readonly #steps: { readonly name: string; readonly close: CloseStep }[] = [];
  readonly #clock: Clock;
  readonly #logger: Logger;
  #running: Promise<boolean> | undefined;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Notes how to close a part that was just opened. */
  defer(name: string, close: CloseStep): void {
    this.#steps.push({ name, close });
  }

  /** Closes everything, once; later calls get the same outcome. @returns whether every part closed well in time */
  run(limits: ShutdownLimits): Promise<boolean> {
    this.#running ??= this.#run(limits);
    return this.#running;
  }

  async #run(limits: ShutdownLimits): Promise<boolean> {
    const softAt = this.#clock.monotonicMs() + limits.softMs;
    const hardAt = softAt + limits.graceMs;
    let isClean = true;
    for (const { name, close } of this.#steps.toReversed()) {
      try {
        const leftMs = hardAt - this.#clock.monotonicMs();
        const withinMs = Math.max(0, softAt - this.#clock.monotonicMs());
        await within(Math.max(0, leftMs), async () => close(withinMs));
      } catch (error) {
        isClean = false;
        this.#logger.error({ err: error, part: name }, 'a part of the node did not close well');
      }
    }
    return isClean;
  }
}

function within(limitMs: number, work: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not closed within ${Math.round(limitMs)} ms`)), limitMs);
    work()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}
