export { runCli } from './cli.js';
export { startNode } from './start-node.js';
export type { NodeOptions, RunningNode } from './start-node.js';
