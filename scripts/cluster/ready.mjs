import { setTimeout as sleep } from 'node:timers/promises';

/** Something is wrong with one part. */
export class PartFailure extends Error {
  /** @param {string} name @param {string} reason */
  constructor(name, reason) {
    super(`${name}: ${reason}`);
    this.name = 'PartFailure';
  }
}

/**
 * Resolves when `probe` returns true; what it throws means not yet.
 * @param {import('./part.mjs').Part} part @param {number} withinMs @param {() => Promise<boolean>} probe
 * @throws PartFailure when the part ends or is not ready in time
 */
export async function readyOrEnded(part, withinMs, probe) {
  const giveUpAt = performance.now() + withinMs;
  while (!(await probe().catch(() => false))) {
    if (part.hasEnded) throw new PartFailure(part.name, `did not start: ${await part.ended}`);
    if (performance.now() > giveUpAt) throw new PartFailure(part.name, `is not ready after ${withinMs / 1_000} s`);
    await sleep(50);
  }
}

/** What a URL of this machine answers. */
export async function fetchJson(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  return await response.json();
}
