export type { ConcurrencyLimit } from './concurrency-limit.js';
export { startDispatch } from './start-dispatch.js';
export type { DispatchOptions, DispatchService } from './start-dispatch.js';
