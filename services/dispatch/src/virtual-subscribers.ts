import type { Bus, Delivery, Subjects, Subscription } from '@patchbay/bus';
import type { Directory, DirectoryChange } from '@patchbay/directory';

/** The queue group in which every dispatch instance serves every agent. */
const QUEUE = 'dispatch';

/** What {@link VirtualSubscribers} works with. */
export interface VirtualSubscribersOptions {
  readonly bus: Pick<Bus, 'subscribe'>;
  readonly subjects: Subjects;
  readonly directory: Pick<Directory, 'values' | 'onChange'>;
  readonly dispatch: (delivery: Delivery, agentId: string) => void;
}

/**
 * One subscription for each registered agent: spawned by its registration, drained by its end. An agent that comes
 * back while its old subscription drains gets a new one at once.
 */
export class VirtualSubscribers {
  readonly #options: VirtualSubscribersOptions;
  readonly #active = new Map<string, Subscription>();
  readonly #draining = new Set<Promise<void>>();
  readonly #unfollow: () => void;

  constructor(options: VirtualSubscribersOptions) {
    this.#options = options;
    this.#unfollow = options.directory.onChange((change) => this.#follow(change));
    for (const agent of options.directory.values()) this.#spawn(agent.record.agentId);
  }

  /** Agents that are served. */
  get size(): number {
    return this.#active.size;
  }

  /** Serves nobody any more; resolves when no subscription has a call in hand, or after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    this.#unfollow();
    const active = [...this.#active.values()];
    this.#active.clear();
    await Promise.all([...active.map((subscription) => subscription.drain(withinMs)), this.#drained(withinMs)]);
  }

  /** Resolves when the agents that left before have no call in hand, or after `withinMs`. */
  async #drained(withinMs: number): Promise<void> {
    if (this.#draining.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([Promise.all(this.#draining), timeUp]);
    clearTimeout(timer);
  }

  #follow(change: DirectoryChange): void {
    const { agentId } = change.agent.record;
    if (change.kind === 'removed') this.#end(agentId);
    else this.#spawn(agentId);
  }

  #spawn(agentId: string): void {
    if (this.#active.has(agentId)) return;
    const { bus, subjects, dispatch } = this.#options;
    const handler = (delivery: Delivery): void => dispatch(delivery, agentId);
    this.#active.set(agentId, bus.subscribe(subjects.agent(agentId), handler, { queue: QUEUE }));
  }

  #end(agentId: string): void {
    const subscription = this.#active.get(agentId);
    if (subscription === undefined) return;
    this.#active.delete(agentId);
    // No limit of its own: the calls in hand have their deadlines.
    const forget = (): void => void this.#draining.delete(drained);
    const drained = subscription.drain().then(forget, forget);
    this.#draining.add(drained);
  }
}
