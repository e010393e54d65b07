export type { Beat, LivenessStore, SweepOptions, SweepOutcome } from './liveness-store.js';
export { migrate, openStore } from './open-store.js';
export type { EmbeddedStoreOptions, OpenedStore, PostgresStoreOptions, StoreOptions } from './open-store.js';
export type { RegistryHead, RegistryStore, RegistryWrite, WriteOutcome } from './registry-store.js';
export type { StoreLog } from './store-log.js';
