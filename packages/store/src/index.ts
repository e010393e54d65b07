export type { Beat, LivenessStore, SweepOptions, SweepOutcome } from './liveness-store.js';
export type { RegistryHead, RegistryStore, RegistryWrite, WriteOutcome } from './registry-store.js';
