import { eventually } from '@patchbay/testkit';
import type { Front } from './load-callers.js';

/** Ids of all agents that a front lists, in its order. */
export async function listAgentIds(front: Front): Promise<string[]> {
  const response = await fetch(`${front.url}/agents`, { signal: AbortSignal.timeout(10_000) });
  const agents = (await response.json()) as { agent_id: string }[];
  return agents.map((agent) => agent.agent_id);
}

/** Which of `agentIds` a front does not list. */
export async function missingAgents(front: Front, agentIds: Iterable<string>): Promise<string[]> {
  const listed = new Set(await listAgentIds(front));
  return [...agentIds].filter((agentId) => !listed.has(agentId));
}

/** Resolves when a front lists all of `agentIds`. @throws Error that names some that it does not list in time */
export async function listsAll(front: Front, agentIds: readonly string[], withinMs = 10_000): Promise<void> {
  let missing: string[] = [];
  try {
    await eventually(async () => (missing = await missingAgents(front, agentIds)).length === 0, { withinMs });
  } catch (cause) {
    const some = missing.slice(0, 10).join(', ');
    throw new Error(`${front.url} does not list ${missing.length} of ${agentIds.length} agents: ${some}`, { cause });
  }
}
