/**
 * How many calls of one agent may be in hand at once, unary and streams together. Nobody queues: what does not fit
 * is refused. The place where a share of a cluster-wide limit goes.
 */
export interface ConcurrencyLimit {
  /** Takes a slot of the agent. @returns false when none is free. */
  tryTake(agentId: string): boolean;
  /** Gives back a slot that `tryTake` granted; exactly once each. */
  release(agentId: string): void;
}

/** A limit for this process alone. Agents without calls in hand cost nothing. */
export class LocalConcurrencyLimit implements ConcurrencyLimit {
  readonly #perAgent: number;
  readonly #taken = new Map<string, number>();

  /** @param perAgent Calls in hand for each agent, at least 1. */
  constructor(perAgent: number) {
    this.#perAgent = perAgent;
  }

  tryTake(agentId: string): boolean {
    const taken = this.#taken.get(agentId) ?? 0;
    if (taken >= this.#perAgent) return false;
    this.#taken.set(agentId, taken + 1);
    return true;
  }

  release(agentId: string): void {
    const taken = this.#taken.get(agentId) ?? 0;
    if (taken <= 1) this.#taken.delete(agentId);
    else this.#taken.set(agentId, taken - 1);
  }

  /** Slots of `agentId` that are taken now. */
  taken(agentId: string): number {
    return this.#taken.get(agentId) ?? 0;
  }
}
