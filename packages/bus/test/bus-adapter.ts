import type { Bus, BusStats } from '@patchbay/bus';

/** What an adapter shows of itself beside the port. */
export type CountedBus = Bus & { stats(): BusStats };

/** Two instances on one message system, as two nodes have them; in the memory bus both are the same. */
export interface BusPair extends AsyncDisposable {
  /** Where calls are made. */
  readonly caller: CountedBus;
  /** Where they are served. */
  readonly responder: CountedBus;
  /** Errors that subscribers let out. */
  readonly handlerErrors: unknown[];
  /** Resolves when the caller's side knows what the responder has subscribed to so far. */
  settle(): Promise<void>;
}

/** One adapter under the contract suite. */
export interface BusAdapter {
  readonly name: string;
  createPair(): Promise<BusPair>;
}
