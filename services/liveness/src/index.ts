export { startLiveness } from './start-liveness.js';
export type { LivenessOptions, LivenessService } from './start-liveness.js';
export type { SweepReport } from './sweeper.js';
