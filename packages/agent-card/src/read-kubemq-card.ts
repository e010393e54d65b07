import { AGENT_ID_RULE, isAgentId, parseStrictJson, PatchbayError } from '@patchbay/core';
import type { AgentInterface, AgentRecord, AgentSkill } from './agent-record.js';
import { listOf, membersOf, optionalText, refuseMember, requiredText, textList } from './card-member.js';
import type { Members } from './card-member.js';
import { KUBEMQ_MEMBERS } from './kubemq-card.js';

/** Bounds of {@link readKubemqCard}. */
export interface ReadCardLimits {
  /** Longest card, in bytes as received. */
  readonly maxBytes: number;
}

const MAX_NAME = 256;
const MAX_URL = 2048;
const MAX_DESCRIPTION = 2048;
const MAX_VERSION = 64;
/** More versions than anybody speaks: each interface repeats the URL, so a long list must not multiply a card. */
const MAX_INTERFACES = 16;
const DEFAULT_MODES = ['text'];
/** KubeMQ's own label for an agent that names no version; kept verbatim. */
const DEFAULT_PROTOCOL_VERSIONS = ['1.0'];
const SKILL_MEMBERS: ReadonlySet<string> = new Set(['id', 'name', 'description', 'tags']);

/**
 * Reads a card as KubeMQ's registry takes it. Lengths are counted in characters (Unicode code points); optional
 * members that are null count as absent; `registered_at`, `last_seen` and `registered_by` are the server's and are
 * ignored; unknown members are kept.
 *
 * @throws PatchbayError `request_too_large`; `parse_error` for what is not JSON; `invalid_argument` naming the field,
 * the rule and the value for everything else.
 */
export function readKubemqCard(bytes: Uint8Array, limits: ReadCardLimits): AgentRecord {
  if (bytes.length > limits.maxBytes) {
    throw new PatchbayError(
      'request_too_large',
      `the card has ${bytes.length} bytes; at most ${limits.maxBytes} are accepted`,
    );
  }
  const card = membersOf(parseStrictJson(bytes), 'the card');
  const agentId = card.get('agent_id');
  if (!isAgentId(agentId)) return refuseMember('agent_id', AGENT_ID_RULE, agentId);
  const name = requiredText(card, 'name', { min: 1, max: MAX_NAME });
  const url = readUrl(card);
  const description = optionalText(card, 'description', { max: MAX_DESCRIPTION });
  const version = optionalText(card, 'version', { max: MAX_VERSION });
  const skills = listOf(card, 'skills').map(readSkill);
  const defaultInputModes = textList(card, 'defaultInputModes', DEFAULT_MODES);
  const defaultOutputModes = textList(card, 'defaultOutputModes', DEFAULT_MODES);
  const protocolVersions = textList(card, 'protocolVersions', DEFAULT_PROTOCOL_VERSIONS);
  return {
    agentId,
    dialect: 'kubemq',
    name,
    description,
    version,
    url,
    skills,
    defaultInputModes,
    defaultOutputModes,
    protocolVersions,
    interfaces: interfacesOf(url, protocolVersions),
    extra: membersBeside(card, KUBEMQ_MEMBERS),
  };
}

const URL_RULE = `an absolute http:// or https:// URL of at most ${MAX_URL} characters without spaces`;

function readUrl(card: Members): string {
  const url = card.get('url');
  if (typeof url !== 'string') return refuseMember('url', URL_RULE, url);
  requiredText(card, 'url', { min: 1, max: MAX_URL });
  // The WHATWG parser alone is too kind: it takes `http:host`, drops line breaks and trims, but the agent is called
  // at exactly what is stored.
  const isPlain = /^https?:\/\/[^/?#\\]/i.test(url) && !/[\s\p{Cc}]/u.test(url);
  if (!isPlain || !URL.canParse(url) || new URL(url).hostname === '') return refuseMember('url', URL_RULE, url);
  return url;
}

function readSkill(value: unknown, index: number): AgentSkill {
  const field = `skills[${index}]`;
  const skill = membersOf(value, field);
  return {
    ...membersBeside(skill, SKILL_MEMBERS),
    id: requiredText(skill, 'id', { min: 1 }, `${field}.id`),
    name: requiredText(skill, 'name', { min: 1 }, `${field}.name`),
    description: optionalText(skill, 'description', {}, `${field}.description`),
    tags: textList(skill, 'tags', [], `${field}.tags`),
  };
}

function interfacesOf(url: string, protocolVersions: readonly string[]): AgentInterface[] {
  const named = protocolVersions.length === 0 ? DEFAULT_PROTOCOL_VERSIONS : protocolVersions;
  return [...new Set(named)]
    .slice(0, MAX_INTERFACES)
    .map((protocolVersion) => ({ url, binding: 'JSONRPC', protocolVersion }));
}

function membersBeside(members: Members, known: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries([...members].filter(([name]) => !known.has(name)));
}
