import { formatTimestamp } from '@patchbay/core';
import type { AgentSkill, RegisteredAgent } from './agent-record.js';

/** Members of a card that KubeMQ's contract defines; everything else in a card is `extra`. */
export const KUBEMQ_MEMBERS: ReadonlySet<string> = new Set([
  'agent_id',
  'name',
  'description',
  'version',
  'url',
  'skills',
  'defaultInputModes',
  'defaultOutputModes',
  'protocolVersions',
  'registered_at',
  'last_seen',
  'registered_by',
]);

/** A card as KubeMQ's registry answers it: plain JSON, members in the order of its documentation. */
export interface KubemqCard {
  readonly agent_id: string;
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** The URL as registered. */
  readonly url: string;
  readonly skills: readonly AgentSkill[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly protocolVersions: readonly string[];
  /** UTC with three fraction digits: sorts as a string. */
  readonly registered_at: string;
  /** Likewise. */
  readonly last_seen: string;
  readonly [extra: string]: unknown;
}

/** The whole card of `agent` in KubeMQ's form. Members it does not define follow its own and never replace them. */
export function projectKubemqCard(agent: RegisteredAgent): KubemqCard {
  const { record } = agent;
  return {
    agent_id: record.agentId,
    name: record.name,
    description: record.description,
    version: record.version,
    url: record.url,
    skills: record.skills,
    defaultInputModes: record.defaultInputModes,
    defaultOutputModes: record.defaultOutputModes,
    protocolVersions: record.protocolVersions,
    ...withoutKubemqMembers(record.extra),
    registered_at: formatTimestamp(agent.registeredAtMs),
    last_seen: formatTimestamp(agent.lastSeenMs),
  };
}

function withoutKubemqMembers(extra: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra).filter(([name]) => !KUBEMQ_MEMBERS.has(name)));
}
