import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';

/** What changed in a directory; told after the change is visible. */
export type DirectoryChange =
  | { readonly kind: 'added' | 'updated'; readonly agent: RegisteredAgent }
  | { readonly kind: 'removed'; readonly agent: RegisteredAgent; readonly reason: 'deregistered' | 'expired' };

/** Which agents a list holds. */
export interface AgentFilter {
  /** Keep an agent when one of its skills has one of these tags (exact). Empty or absent: all. */
  readonly skillTags?: readonly string[];
  /** At most this many, after filtering. Absent: all. */
  readonly limit?: number;
}

/**
 * All agents in memory, in the order of their first registration: what every read is served from. Changed by the
 * replica that follows the registry, and by nobody else.
 */
export class Directory {
  // Insertion order is the order of ordinals: events come in revision order, snapshots sorted.
  #agents = new Map<string, RegisteredAgent>();
  readonly #byTag = new Map<string, Set<string>>();
  readonly #listeners = new Set<(change: DirectoryChange) => void>();
  #revision = 0;

  /** The revision up to which all events are applied. */
  get revision(): number {
    return this.#revision;
  }

  get size(): number {
    return this.#agents.size;
  }

  get(agentId: string): RegisteredAgent | undefined {
    return this.#agents.get(agentId);
  }

  /** All agents in the order of their first registration. */
  values(): IterableIterator<RegisteredAgent> {
    return this.#agents.values();
  }

  /** The agents that pass `filter`, in the order of their first registration. */
  list(filter: AgentFilter = {}): RegisteredAgent[] {
    const limit = filter.limit ?? Infinity;
    const tags = filter.skillTags ?? [];
    if (tags.length > 0) return this.#withTags(tags).slice(0, limit);
    const found: RegisteredAgent[] = [];
    for (const agent of this.#agents.values()) {
      if (found.length >= limit) break;
      found.push(agent);
    }
    return found;
  }

  #withTags(tags: readonly string[]): RegisteredAgent[] {
    const ids = new Set(tags.flatMap((tag) => [...(this.#byTag.get(tag) ?? [])]));
    return [...ids].flatMap((id) => this.#agents.get(id) ?? []).toSorted((a, b) => a.ordinal - b.ordinal);
  }

  /** Applies the next event. @returns false, and changes nothing, when it is not the one after `revision`. */
  apply(event: RegistryEvent): boolean {
    if (event.revision !== this.#revision + 1) return false;
    this.#revision = event.revision;
    if (event.agent === null) this.#remove(event.agentId, event.reason ?? 'deregistered');
    else this.#put(event.agent);
    return true;
  }

  /** Replaces everything by the state as of `revision`; listeners are told the differences. */
  replaceAll(agents: readonly RegisteredAgent[], revision: number): void {
    const coming = new Map(agents.map((agent) => [agent.record.agentId, agent]));
    for (const agentId of this.#agents.keys()) {
      if (!coming.has(agentId)) this.#remove(agentId, 'deregistered');
    }
    const before = this.#agents;
    this.#agents = new Map();
    for (const agent of agents.toSorted((a, b) => a.ordinal - b.ordinal)) {
      const known = before.get(agent.record.agentId);
      if (known?.revision === agent.revision) {
        this.#agents.set(agent.record.agentId, later(known, agent));
      } else {
        if (known !== undefined) this.#unindex(known);
        this.#index(agent);
        this.#agents.set(agent.record.agentId, known === undefined ? agent : later(agent, known));
        this.#tell({ kind: known === undefined ? 'added' : 'updated', agent });
      }
    }
    this.#revision = revision;
  }

  /** Notes a sign of life; an older one than known changes nothing. Not revisioned. */
  touch(agentId: string, lastSeenMs: number): void {
    const agent = this.#agents.get(agentId);
    if (agent !== undefined && lastSeenMs > agent.lastSeenMs) this.#agents.set(agentId, { ...agent, lastSeenMs });
  }

  /** Calls `listener` after each change of the set of agents; returns the way to stop that. */
  onChange(listener: (change: DirectoryChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #put(agent: RegisteredAgent): void {
    const known = this.#agents.get(agent.record.agentId);
    // A deregistration and a new registration may both have happened: a new ordinal goes to the end.
    if (known !== undefined && known.ordinal !== agent.ordinal) this.#agents.delete(agent.record.agentId);
    if (known !== undefined) this.#unindex(known);
    this.#index(agent);
    this.#agents.set(agent.record.agentId, known === undefined ? agent : later(agent, known));
    this.#tell({ kind: known === undefined ? 'added' : 'updated', agent });
  }

  #remove(agentId: string, reason: 'deregistered' | 'expired'): void {
    const agent = this.#agents.get(agentId);
    if (agent === undefined) return;
    this.#agents.delete(agentId);
    this.#unindex(agent);
    this.#tell({ kind: 'removed', agent, reason });
  }

  #index(agent: RegisteredAgent): void {
    for (const tag of tagsOf(agent)) {
      const ids = this.#byTag.get(tag);
      if (ids === undefined) this.#byTag.set(tag, new Set([agent.record.agentId]));
      else ids.add(agent.record.agentId);
    }
  }

  #unindex(agent: RegisteredAgent): void {
    for (const tag of tagsOf(agent)) {
      const ids = this.#byTag.get(tag);
      ids?.delete(agent.record.agentId);
      if (ids?.size === 0) this.#byTag.delete(tag);
    }
  }

  #tell(change: DirectoryChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

function tagsOf(agent: RegisteredAgent): Set<string> {
  return new Set(agent.record.skills.flatMap((skill) => skill.tags));
}

/** `agent` with the later of the two signs of life. */
function later(agent: RegisteredAgent, other: RegisteredAgent): RegisteredAgent {
  return other.lastSeenMs > agent.lastSeenMs ? { ...agent, lastSeenMs: other.lastSeenMs } : agent;
}
