import type { RegistryEvent } from '@patchbay/agent-card';

/** Events kept while an earlier one is missing; what does not fit is fetched again. */
const MAX_PENDING = 20_000;

/** Events that cannot be applied yet, by revision; each revision once. */
export class PendingEvents {
  readonly #events = new Map<number, RegistryEvent>();

  /** Keeps `event` unless it is known to be applied already. */
  add(event: RegistryEvent, appliedRevision: number): void {
    if (event.revision <= appliedRevision) return;
    if (event.revision !== appliedRevision + 1 && this.#events.size >= MAX_PENDING) return;
    this.#events.set(event.revision, event);
  }

  /** Takes out the event that follows `appliedRevision`, and forgets what is older. */
  take(appliedRevision: number): RegistryEvent | undefined {
    const next = this.#events.get(appliedRevision + 1);
    if (next !== undefined) this.#events.delete(next.revision);
    else if (this.#events.size > 0) this.#forget(appliedRevision);
    return next;
  }

  clear(): void {
    this.#events.clear();
  }

  get size(): number {
    return this.#events.size;
  }

  #forget(appliedRevision: number): void {
    for (const revision of this.#events.keys()) {
      if (revision <= appliedRevision) this.#events.delete(revision);
    }
  }
}
