import { PatchbayError } from '@patchbay/core';

/** A clock that ticks after every so much silence. */
export class Keepalive {
  readonly #timer: NodeJS.Timeout | undefined;

  /** @param intervalMs 0 = never ticks. */
  constructor(intervalMs: number, tick: () => void) {
    if (intervalMs > 0) {
      this.#timer = setTimeout(() => {
        tick();
        this.#timer?.refresh();
      }, intervalMs);
      this.#timer.unref();
    }
  }

  /** Something was sent: the silence starts anew. */
  reset(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Limits of what a client may ask for, in seconds. */
const SHORTEST = 1;
const LONGEST = 3600;

/**
 * The keepalive interval that a client asks for in its query, `keepalive=off` or `keepalive=<seconds>`, in
 * milliseconds; 0 for off.
 * @returns undefined when it does not ask
 * @throws PatchbayError invalid_argument
 */
export function readKeepaliveQuery(url: string): number | undefined {
  const start = url.indexOf('?');
  if (start === -1) return undefined;
  const asked = new URLSearchParams(url.slice(start + 1)).get('keepalive');
  if (asked === null) return undefined;
  if (asked === 'off' || asked === '0') return 0;
  const seconds = /^\d{1,4}(\.\d{1,3})?$/.test(asked) ? Number(asked) : Number.NaN;
  if (seconds >= SHORTEST && seconds <= LONGEST) return seconds * 1000;
  const got = JSON.stringify(asked.length > 100 ? `${asked.slice(0, 100)}…` : asked);
  const rule = `keepalive must be "off", 0 or seconds from ${SHORTEST} to ${LONGEST}; got ${got}`;
  throw new PatchbayError('invalid_argument', rule);
}
