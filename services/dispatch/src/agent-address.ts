import type { AgentRecord } from '@patchbay/agent-card';

/** A registered URL, taken apart once for the HTTP client. */
export interface AgentAddress {
  /** `http://host:port`, without credentials. */
  readonly origin: string;
  /** Path and query as they were registered. */
  readonly path: string;
  readonly host: string;
  readonly port: number;
}

// Keyed by the record, which an update replaces: an entry lives exactly as long as the card it was made from.
const known = new WeakMap<AgentRecord, AgentAddress>();

/** Where `record` is called; undefined when its URL cannot be parsed, which registration should not have let pass. */
export function addressOf(record: AgentRecord): AgentAddress | undefined {
  const found = known.get(record);
  if (found !== undefined) return found;
  if (!URL.canParse(record.url)) return undefined;
  const address = parseAgentAddress(record.url);
  known.set(record, address);
  return address;
}

/**
 * Takes a valid URL apart and keeps its path and query letter by letter: the URL parser would resolve `/a/../b` and rewrite
 * characters. Only what cannot stand in a request line (spaces, non-ASCII letters, backslashes) takes the parser's form.
 *
 * User and password are dropped: no header with a credential ever goes to an agent, not even its own.
 */
export function parseAgentAddress(url: string): AgentAddress {
  const parsed = new URL(url);
  const raw = /^https?:\/\/[^/?#\\]*([^#]*)/i.exec(url)?.[1] ?? '';
  const isUsableAsIs = /^[\x21-\x5b\x5d-\x7e]*$/.test(raw);
  const path = isUsableAsIs ? raw : parsed.pathname + parsed.search;
  return {
    origin: parsed.origin,
    path: path.startsWith('/') ? path : `/${path}`,
    host: parsed.hostname,
    port: parsed.port === '' ? (parsed.protocol === 'https:' ? 443 : 80) : Number(parsed.port),
  };
}
