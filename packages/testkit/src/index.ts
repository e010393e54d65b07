export type { AgentScript, ScriptedEvent, StreamScript } from './agents/agent-script.js';
export { ScriptedAgent, startScriptedAgent } from './agents/scripted-agent.js';
export type { RecordedRequest, ScriptedAgentOptions } from './agents/scripted-agent.js';
export { eventually } from './eventually.js';
export type { EventuallyOptions } from './eventually.js';
export { freePort } from './free-port.js';
export { PatchbayProcess } from './patchbay-process.js';
export type { PatchbayProcessOptions } from './patchbay-process.js';
