export { Directory } from './directory.js';
export type { AgentFilter, DirectoryChange } from './directory.js';
