/**
 * How many calls of one agent may be in hand at once, unary and streams together. Nobody queues: what does not fit
 * is refused.
 */
export interface ConcurrencyLimit {
  /** Takes a slot of the agent. @returns false when none is free. */
  tryTake(agentId: string): boolean;
  /** Gives back a slot that `tryTake` granted; exactly once each. */
  release(agentId: string): void;
}

/** How many slots of every agent this process has. It may change: calls in hand stay, and only new ones are refused. */
export interface SlotShare {
  readonly size: number;
}

/** Counts the calls that this process has in hand against its share. Agents without any cost nothing. Hot path. */
export class AgentSlots implements ConcurrencyLimit {
  readonly #share: SlotShare;
  readonly #taken = new Map<string, number>();

  constructor(share: SlotShare) {
    this.#share = share;
  }

  tryTake(agentId: string): boolean {
    const taken = this.#taken.get(agentId) ?? 0;
    if (taken >= this.#share.size) return false;
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

  /** Slots that the busiest agent has left; every other has more. */
  get free(): number {
    let most = 0;
    for (const taken of this.#taken.values()) most = Math.max(most, taken);
    return Math.max(0, this.#share.size - most);
  }
}
