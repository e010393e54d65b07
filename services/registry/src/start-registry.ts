import { readKubemqCard } from '@patchbay/agent-card';
import type { AgentRecord, Dialect, ReadCardLimits, RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { BusHeader } from '@patchbay/bus';
import type { Bus, Delivery, Subjects } from '@patchbay/bus';
import { asPatchbayError, isAgentId, PatchbayError } from '@patchbay/core';
import type { Directory, DirectoryReplica, Membership } from '@patchbay/directory';
import { serveRegistry } from '@patchbay/service-api';
import type { RegistryHandlers } from '@patchbay/service-api';
import type { RegistryStore, RegistryWrite, WriteOutcome } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';
import { AckTracker } from './ack-tracker.js';
import { EventAnnouncer } from './event-announcer.js';
import { HeadWatch } from './head-watch.js';
import { readChanges } from './read-changes.js';
import { WriteBatcher } from './write-batcher.js';
import type { SubmittedWrite } from './write-batcher.js';

/** What {@link startRegistry} needs. */
export interface RegistryOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly store: RegistryStore;
  /** Whether the database is believed to answer. Default: always. */
  readonly isStoreUp?: () => boolean;
  readonly directory: Directory;
  readonly replica: DirectoryReplica;
  readonly membership: Membership;
  readonly nodeId: string;
  /** Most records; 0 = unlimited. */
  readonly maxAgents: number;
  /** Longest card, in bytes as received. */
  readonly maxCardBytes: number;
  readonly logger: Logger;
}

/** The registry of one node, running. */
export interface RegistryService {
  /** Takes no new requests, and resolves when what is in hand is finished, at the latest after `withinMs`. Idempotent. */
  drain(withinMs: number): Promise<void>;
}

const ACK_PATIENCE_MS = 250;
const BATCH_LIMITS = {
  maxRows: 500,
  maxBytes: 4 * 1024 * 1024,
  maxWaitingRows: 10_000,
  maxWaitingBytes: 64 * 1024 * 1024,
};
/** Bytes that a write without a card counts for. */
const SMALL_WRITE_BYTES = 256;

const CARD_READERS: Record<Dialect, (card: Uint8Array, limits: ReadCardLimits) => AgentRecord> = {
  kubemq: readKubemqCard,
};

/** A write's outcome, and when every live node has applied its batch. */
interface Written {
  readonly outcome: WriteOutcome;
  readonly applied: Promise<void>;
}

/** Serves the registry: the only writer of cards. Effective when the bus is flushed. */
export function startRegistry(options: RegistryOptions): RegistryService {
  const { bus, subjects, store, directory, nodeId, maxAgents, maxCardBytes, logger } = options;
  const { isStoreUp = () => true } = options;
  const acks = new AckTracker(options);
  const announcer = new EventAnnouncer(options);
  const headWatch = new HeadWatch({ ...options, announcer });
  const batcher = new WriteBatcher<RegistryWrite, Written>(commit, BATCH_LIMITS);

  async function commit(writes: readonly RegistryWrite[]): Promise<readonly Written[]> {
    assertStoreUp();
    let outcomes: WriteOutcome[];
    try {
      await announcer.settleUnknown();
      outcomes = await store.write(writes, { nodeId, maxAgents });
    } catch (error) {
      logger.warn({ err: error, writes: writes.length }, 'registrations were not written');
      announcer.noteUnknownOutcome();
      headWatch.lookNow();
      throw withoutInsides(error);
    }
    const events = outcomes.flatMap((outcome) => (outcome.kind === 'written' ? [outcome.event] : []));
    announcer.announce(events);
    const last = events.at(-1);
    const applied = last === undefined ? Promise.resolve() : acks.waitFor(last.revision, ACK_PATIENCE_MS);
    return outcomes.map((outcome) => ({ outcome, applied }));
  }

  /** A database that is known to be away is not waited for: finding that out takes seconds. */
  function assertStoreUp(): void {
    if (!isStoreUp()) throw databaseAway();
  }

  async function write(submitted: SubmittedWrite<RegistryWrite>, delivery: Delivery): Promise<RegistryEvent> {
    assertStoreUp();
    // Stopped processes and servers deliver late: a write that was given up, and perhaps repeated, must not be made.
    if ((await delivery.exchange?.confirm()) === false) throw new PatchbayError('cancelled', 'the caller has left');
    const { outcome, applied } = await batcher.submit(submitted);
    if (outcome.kind === 'refused') throw refusal(outcome.code, maxAgents);
    await applied;
    const { kind, agentId, revision } = outcome.event;
    logger.debug({ agent_id: agentId, revision }, `agent ${kind}`);
    return outcome.event;
  }

  const handlers: RegistryHandlers = {
    async register(card, { dialect, delivery }): Promise<RegisteredAgent> {
      const record = readCard(card, dialect, { maxBytes: maxCardBytes });
      const { agent } = await write(
        {
          write: { kind: 'register', record, cardRaw: card, ...traceOf(delivery) },
          size: card.length + SMALL_WRITE_BYTES,
          assertWanted: () => assertWanted(delivery),
        },
        delivery,
      );
      if (agent === null) throw new PatchbayError('internal', 'a registration left no agent');
      // A heartbeat that is not in the database yet may be the later sign of life: last_seen never goes back.
      const heardMs = directory.get(agent.record.agentId)?.lastSeenMs ?? 0;
      return heardMs > agent.lastSeenMs ? { ...agent, lastSeenMs: heardMs } : agent;
    },
    async deregister(agentId, { delivery }): Promise<void> {
      if (!isAgentId(agentId)) throw new PatchbayError('agent_not_found', 'agent not found');
      await write(
        {
          write: { kind: 'deregister', agentId, ...traceOf(delivery) },
          size: SMALL_WRITE_BYTES,
          assertWanted: () => assertWanted(delivery),
        },
        delivery,
      );
    },
    async lookup(agentId): Promise<RegisteredAgent | null> {
      if (!isAgentId(agentId)) return null;
      try {
        return await store.get(agentId);
      } catch (error) {
        throw withoutInsides(error);
      }
    },
    changes: (sinceRevision) => readChanges(store, sinceRevision),
  };
  const subscriptions = serveRegistry(bus, subjects, handlers, nodeId);

  let draining: Promise<void> | undefined;
  async function drain(withinMs: number): Promise<void> {
    await Promise.all(subscriptions.map((subscription) => subscription.drain(withinMs)));
    await Promise.all([headWatch.stop(), acks.stop()]);
  }
  return { drain: (withinMs) => (draining ??= drain(withinMs)) };
}

function readCard(card: Uint8Array, dialect: Dialect, limits: ReadCardLimits): AgentRecord {
  if (!Object.hasOwn(CARD_READERS, dialect)) {
    const known = Object.keys(CARD_READERS).join(', ');
    throw new PatchbayError('invalid_argument', `the dialect of the card must be one of: ${known}`);
  }
  return CARD_READERS[dialect](card, limits);
}

function traceOf(delivery: Delivery): { traceparent?: string } {
  const traceparent = delivery.headers[BusHeader.traceparent];
  return traceparent === undefined ? {} : { traceparent };
}

/** A write whose caller has left or given up is not made: a late registration would surprise everybody. */
function assertWanted({ exchange }: Delivery): void {
  if (exchange === undefined) return;
  if (exchange.signal.aborted) throw new PatchbayError('cancelled', 'the caller has left');
  if (performance.now() >= exchange.deadlineMs) {
    throw new PatchbayError('deadline_exceeded', 'the database was not reached within the time of the call');
  }
}

function databaseAway(cause?: unknown): PatchbayError {
  const message =
    'the registry cannot reach its database at the moment; try again, registrations can be repeated safely';
  return new PatchbayError('store_unavailable', message, { cause });
}

/** Where the database is and what it said is for our log, not for clients. */
function withoutInsides(error: unknown): PatchbayError {
  const known = asPatchbayError(error);
  return known.code === 'store_unavailable' ? databaseAway(error) : known;
}

function refusal(code: (WriteOutcome & { kind: 'refused' })['code'], maxAgents: number): PatchbayError {
  switch (code) {
    case 'agent_not_found':
      return new PatchbayError(code, 'agent not found');
    case 'agent_limit_reached':
      return new PatchbayError(
        code,
        `the registry holds its limit of ${maxAgents} agents (PATCHBAY_MAX_AGENTS); deregister one first`,
      );
    case 'invalid_argument':
      return new PatchbayError(
        code,
        'the database cannot hold this card; look for characters that are not Unicode text',
      );
    case 'permission_denied':
      return new PatchbayError(code, 'the agent belongs to another principal');
  }
}
