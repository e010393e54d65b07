export { eventually } from './eventually.js';
export type { EventuallyOptions } from './eventually.js';
export { freePort } from './free-port.js';
export { PatchbayProcess } from './patchbay-process.js';
export type { PatchbayProcessOptions } from './patchbay-process.js';
