import { systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';

const TICK_MS = 10;
const SLOTS = 1024;
/** A tick that comes this late was held up by a busy event loop. */
const LATE_MS = 100;

/** Something that is due at a time. Extended by the calls themselves, so that a deadline costs no object of its own. */
export abstract class WheelEntry {
  /** When it is due, monotonic milliseconds. Changed by the wheel alone. */
  dueMs = 0;
  /** Links of the wheel's lists; undefined when the entry is on no wheel. */
  previous: WheelEntry | undefined;
  next: WheelEntry | undefined;

  /** Called once the time has come; the entry is off the wheel by then and may be added again. */
  abstract onDue(nowMs: number): void;
}

class SlotHead extends WheelEntry {
  override onDue(): void {}
}

/**
 * Deadlines of many calls on one timer. Hot path: adding and removing relink a list and allocate nothing.
 *
 * Entries are due up to 10 ms late and never early. The timer runs only while there are entries; it keeps the process
 * alive, so that a program which waits for an answer does not end without one.
 */
export class DeadlineWheel {
  readonly #clock: Clock;
  readonly #slots: SlotHead[] = [];
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #sweptMs = 0;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    for (let slot = 0; slot < SLOTS; slot++) {
      const head = new SlotHead();
      head.previous = head;
      head.next = head;
      this.#slots.push(head);
    }
  }

  /** How many entries are waiting. */
  get size(): number {
    return this.#size;
  }

  /** Makes `entry` due at `dueMs`; an entry that is on the wheel already is moved. */
  add(entry: WheelEntry, dueMs: number): void {
    if (entry.next !== undefined) this.remove(entry);
    if (this.#size++ === 0) this.#start();
    entry.dueMs = dueMs;
    // An entry that is due already goes to the first slot that is swept next.
    const tick = Math.max(Math.floor(dueMs / TICK_MS), Math.floor(this.#sweptMs / TICK_MS));
    const head = this.#slots[tick % SLOTS];
    if (head === undefined) return;
    const last = head.previous ?? head;
    entry.previous = last;
    entry.next = head;
    last.next = entry;
    head.previous = entry;
  }

  /** Takes `entry` off; does nothing when it is not on. */
  remove(entry: WheelEntry): void {
    if (entry.next === undefined || entry.previous === undefined) return;
    entry.previous.next = entry.next;
    entry.next.previous = entry.previous;
    entry.previous = undefined;
    entry.next = undefined;
    this.#size--;
  }

  /** Every entry that is waiting, for ending them all. */
  entries(): WheelEntry[] {
    const all: WheelEntry[] = [];
    for (const head of this.#slots) {
      for (let entry = head.next; entry !== undefined && entry !== head; entry = entry.next) all.push(entry);
    }
    return all;
  }

  #start(): void {
    if (this.#timer !== undefined) return;
    this.#sweptMs = this.#clock.monotonicMs();
    this.#timer = setInterval(() => {
      this.#tick();
    }, TICK_MS);
  }

  #tick(): void {
    if (this.#size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sweptMs < LATE_MS) {
      this.#sweep(nowMs);
      return;
    }
    // What arrived while the loop was busy is read after the timers and before this runs, so nobody is given up for
    // our own slowness.
    setImmediate(() => {
      this.#sweep(this.#clock.monotonicMs());
    });
  }

  #sweep(nowMs: number): void {
    const from = Math.floor(this.#sweptMs / TICK_MS);
    const to = Math.floor(nowMs / TICK_MS);
    this.#sweptMs = nowMs;
    const first = Math.max(from, to - SLOTS + 1);
    for (let tick = first; tick <= to; tick++) {
      const head = this.#slots[tick % SLOTS];
      if (head !== undefined && head.next !== head) this.#sweepSlot(head, nowMs);
    }
  }

  #sweepSlot(head: SlotHead, nowMs: number): void {
    const due: WheelEntry[] = [];
    for (let entry = head.next; entry !== undefined && entry !== head; entry = entry.next) {
      if (entry.dueMs <= nowMs) due.push(entry);
    }
    for (const entry of due) {
      // One entry's end may have taken another off.
      if (entry.next === undefined || entry.dueMs > nowMs) continue;
      this.remove(entry);
      entry.onDue(nowMs);
    }
  }
}
