export type { AgentInterface, AgentRecord, AgentSkill, Dialect, RegisteredAgent } from './agent-record.js';
export type { RegistryEvent, RegistryEventKind } from './registry-event.js';
