import type { Call } from './call.js';

/**
 * The calls that have not ended. Hot path: an array from which the last one fills every gap. A `Set` of objects that
 * come and go rehashes all the time, and its dead tables, once promoted, keep the calls in them alive until a full
 * collection.
 */
export class CallsInHand {
  readonly #calls: Call[] = [];

  get size(): number {
    return this.#calls.length;
  }

  add(call: Call): void {
    call.position = this.#calls.length;
    this.#calls.push(call);
  }

  /** Takes `call` out; it must be in. */
  remove(call: Call): void {
    const last = this.#calls.pop();
    if (last === undefined || last === call) return;
    this.#calls[call.position] = last;
    last.position = call.position;
  }

  /** All of them now; the list may be changed while the result is gone through. */
  snapshot(): readonly Call[] {
    return [...this.#calls];
  }
}
