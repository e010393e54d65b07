/** In which form an agent was registered. */
export type Dialect = 'kubemq';

/** A thing an agent can do; unknown members of the card are kept. */
export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly [extra: string]: unknown;
}

/** One way to reach an agent. */
export interface AgentInterface {
  readonly url: string;
  /** `JSONRPC`, `HTTP+JSON`, `GRPC`, or another binding's own name. */
  readonly binding: string;
  /** Major.Minor of the A2A protocol there, such as `0.3`. */
  readonly protocolVersion: string;
}

/** The normal form of an agent: what every dialect is read into and projected from. Plain JSON. */
export interface AgentRecord {
  readonly agentId: string;
  readonly dialect: Dialect;
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Where the agent is called: the URL exactly as registered. */
  readonly url: string;
  readonly skills: readonly AgentSkill[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly protocolVersions: readonly string[];
  /** In order of preference, never empty. */
  readonly interfaces: readonly AgentInterface[];
  /** Members of the card that the dialect does not know, as they came. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** Who registered it; absent while authentication is off. */
  readonly owner?: string;
}

/** A record with what the registry knows of it. */
export interface RegisteredAgent {
  readonly record: AgentRecord;
  /** Revision of its first registration: the order of every list. */
  readonly ordinal: number;
  /** Revision of its latest change. */
  readonly revision: number;
  /** First registration, milliseconds since 1970 on the database's clock. */
  readonly registeredAtMs: number;
  /** Latest sign of life, likewise. */
  readonly lastSeenMs: number;
}
