/** Counts what is in hand, so that somebody can wait until it is finished. */
export class InHand {
  #count = 0;
  #waiting: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  /** Notes one more. */
  take(): void {
    this.#count++;
  }

  /** Notes that one is finished. */
  release(): void {
    this.#count--;
    if (this.#count > 0 || this.#waiting.length === 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when nothing is in hand, or after `withinMs` (default: no limit). */
  idle(withinMs?: number): Promise<void> {
    if (this.#count <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      if (withinMs === undefined) {
        this.#waiting.push(resolve);
        return;
      }
      const timer = setTimeout(resolve, withinMs);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
