import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import type { RegistryHead, RegistryWrite, WriteOutcome } from '../registry-store.js';
import { isStorable } from './storable.js';

/** What a batch finds under the lock of the head row. */
export interface WriteSituation {
  readonly head: RegistryHead;
  /** The agents that the batch names and that exist. */
  readonly agents: ReadonlyMap<string, RegisteredAgent>;
  /** The database's clock. */
  readonly nowMs: number;
  readonly nodeId: string;
  /** 0 = unlimited. */
  readonly maxAgents: number;
}

/** What a batch does to the tables: each id at most once in `put` or `remove`. */
export interface WritePlan {
  /** One for each write, in order. */
  readonly outcomes: readonly WriteOutcome[];
  readonly events: readonly RegistryEvent[];
  readonly put: readonly { readonly agent: RegisteredAgent; readonly cardRaw: Uint8Array }[];
  readonly remove: readonly string[];
  readonly head: RegistryHead;
}

/** The last state of an id that the batch has changed; `agent` null when it is gone. */
interface Change {
  readonly agent: RegisteredAgent | null;
  readonly cardRaw: Uint8Array;
}

const NO_CARD = new Uint8Array();

/**
 * Decides a batch, write by write in order, as if each had its own transaction. Only writes that change something
 * get a revision, so a refused one leaves no gap. Pure: the caller holds the lock that keeps the situation true.
 */
export function planWrites(writes: readonly RegistryWrite[], situation: WriteSituation): WritePlan {
  const batch = new Batch(situation);
  const outcomes = writes.map((write) => batch.decide(write));
  return { outcomes, ...batch.result() };
}

class Batch {
  readonly #situation: WriteSituation;
  readonly #changes = new Map<string, Change>();
  readonly #events: RegistryEvent[] = [];
  #revision: number;
  #agentCount: number;

  constructor(situation: WriteSituation) {
    this.#situation = situation;
    this.#revision = situation.head.revision;
    this.#agentCount = situation.head.agentCount;
  }

  decide(write: RegistryWrite): WriteOutcome {
    return write.kind === 'register' ? this.#register(write) : this.#deregister(write);
  }

  result(): Omit<WritePlan, 'outcomes'> {
    const put: { agent: RegisteredAgent; cardRaw: Uint8Array }[] = [];
    const remove: string[] = [];
    for (const [agentId, { agent, cardRaw }] of this.#changes) {
      if (agent !== null) put.push({ agent, cardRaw });
      else if (this.#situation.agents.has(agentId)) remove.push(agentId);
    }
    const head = { ...this.#situation.head, revision: this.#revision, agentCount: this.#agentCount };
    return { events: this.#events, put, remove, head };
  }

  #register(write: Extract<RegistryWrite, { kind: 'register' }>): WriteOutcome {
    const { record, cardRaw } = write;
    const { nowMs, maxAgents } = this.#situation;
    if (!isStorable(record) || !isStorable(write.traceparent)) return { kind: 'refused', code: 'invalid_argument' };
    const known = this.#find(record.agentId);
    // Without an owner in the request authentication is off, and whoever may call may write.
    if (known !== null && record.owner !== undefined && record.owner !== known.record.owner) {
      return { kind: 'refused', code: 'permission_denied' };
    }
    if (known === null && maxAgents > 0 && this.#agentCount >= maxAgents) {
      return { kind: 'refused', code: 'agent_limit_reached' };
    }
    const revision = ++this.#revision;
    const agent: RegisteredAgent = {
      record,
      ordinal: known?.ordinal ?? revision,
      revision,
      registeredAtMs: known?.registeredAtMs ?? nowMs,
      lastSeenMs: Math.max(known?.lastSeenMs ?? nowMs, nowMs),
    };
    if (known === null) this.#agentCount += 1;
    this.#changes.set(record.agentId, { agent, cardRaw });
    return this.#written(known === null ? 'registered' : 'updated', record.agentId, agent, write.traceparent);
  }

  #deregister(write: Extract<RegistryWrite, { kind: 'deregister' }>): WriteOutcome {
    const { agentId } = write;
    if (this.#find(agentId) === null) return { kind: 'refused', code: 'agent_not_found' };
    this.#revision += 1;
    this.#agentCount -= 1;
    this.#changes.set(agentId, { agent: null, cardRaw: NO_CARD });
    return this.#written('deregistered', agentId, null, write.traceparent);
  }

  #find(agentId: string): RegisteredAgent | null {
    const change = this.#changes.get(agentId);
    return change === undefined ? (this.#situation.agents.get(agentId) ?? null) : change.agent;
  }

  #written(
    kind: RegistryEvent['kind'],
    agentId: string,
    agent: RegisteredAgent | null,
    traceparent: string | undefined,
  ): WriteOutcome {
    const event: RegistryEvent = {
      v: 1,
      revision: this.#revision,
      kind,
      agentId,
      agent,
      atMs: this.#situation.nowMs,
      nodeId: this.#situation.nodeId,
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    this.#events.push(event);
    return { kind: 'written', event };
  }
}
