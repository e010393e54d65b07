import type { RegistryEvent } from '@patchbay/agent-card';

/** A sign of life to be written. */
export interface Beat {
  readonly agentId: string;
  readonly lastSeenMs: number;
}

/** How a sweep decides. */
export interface SweepOptions {
  readonly nodeId: string;
  /** Agents silent for longer are removed. > 0. */
  readonly ttlMs: number;
  /** Expected time between sweeps. */
  readonly intervalMs: number;
  /** Time in which beats could not be heard, added to the TTL. Default 0. */
  readonly deafMs?: number;
}

/** What a sweep did. */
export type SweepOutcome =
  | { readonly kind: 'swept'; readonly expired: readonly RegistryEvent[] }
  /** Another node sweeps at this moment. */
  | { readonly kind: 'busy' }
  /** The last complete sweep is more than two intervals ago: nobody expires until one TTL after we could hear again. */
  | { readonly kind: 'grace'; readonly untilMs: number };

/** Signs of life on disk. Throws as `RegistryStore` does. */
export interface LivenessStore {
  /** Writes a batch; a beat older than the stored one changes nothing. @returns the database's clock, ms since 1970 */
  recordBeats(beats: readonly Beat[]): Promise<number>;
  /** The database's clock, milliseconds since 1970. */
  databaseTimeMs(): Promise<number>;
  /** Removes what is older than the TTL in one transaction that no heartbeat can race; one node at a time. */
  sweep(options: SweepOptions): Promise<SweepOutcome>;
}
