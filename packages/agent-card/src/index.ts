export type { AgentInterface, AgentRecord, AgentSkill, Dialect, RegisteredAgent } from './agent-record.js';
export { projectKubemqCard } from './kubemq-card.js';
export type { KubemqCard } from './kubemq-card.js';
export { readKubemqCard } from './read-kubemq-card.js';
export type { ReadCardLimits } from './read-kubemq-card.js';
export type { RegistryEvent, RegistryEventKind } from './registry-event.js';
