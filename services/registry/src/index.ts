export { startRegistry } from './start-registry.js';
export type { RegistryOptions, RegistryService } from './start-registry.js';
