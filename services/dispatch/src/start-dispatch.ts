import { BusHeader } from '@patchbay/bus';
import type { Bus, Subjects } from '@patchbay/bus';
import { systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import type { Directory } from '@patchbay/directory';
import type { Logger } from '@patchbay/telemetry';
import { createAgentClient } from './agent-client.js';
import type { AgentFailure } from './agent-failure.js';
import { CallDispatcher } from './call-dispatcher.js';
import { LocalConcurrencyLimit } from './concurrency-limit.js';
import { VirtualSubscribers } from './virtual-subscribers.js';

/** Settings of {@link startDispatch}. */
export interface DispatchOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly directory: Directory;
  readonly nodeId: string;
  readonly logger: Logger;
  /** Calls in hand for each agent, unary and streams together. Default 100. */
  readonly agentConcurrency?: number;
  /** Largest reply and largest event, bytes. Default 10,485,760. */
  readonly maxResponseBytes?: number;
  /** Longest silence of an agent within a stream, milliseconds. Default 900,000. */
  readonly streamIdleMs?: number;
  /** Time for a connection to an agent to be made, milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number;
  readonly clock?: Clock;
}

/** A running dispatch. */
export interface DispatchService {
  /**
   * Takes no new calls, waits for those in hand, and after `withinMs` milliseconds fails the rest with `draining`.
   * Closes every connection to agents. Idempotent.
   */
  drain(withinMs: number): Promise<void>;
  /** Calls that have not ended. */
  inHand(): number;
  /** Open event streams of one agent. */
  activeStreams(agentId: string): number;
  /** Open event streams of every agent that has any. */
  readonly streams: ReadonlyMap<string, number>;
  /** Agents that are served. */
  subscribers(): number;
}

const SHUTTING_DOWN: AgentFailure = { code: 'draining', detail: 'this node is shutting down; call again' };

/** Serves every agent in the directory, and this node's own subject. */
export function startDispatch(options: DispatchOptions): DispatchService {
  const { bus, subjects, directory, nodeId, logger } = options;
  const client = createAgentClient({ connectTimeoutMs: options.connectTimeoutMs ?? 5_000 });
  const calls = new CallDispatcher({
    directory,
    client,
    limit: new LocalConcurrencyLimit(options.agentConcurrency ?? 100),
    streams: {
      maxResponseBytes: options.maxResponseBytes ?? 10_485_760,
      idleMs: options.streamIdleMs ?? 900_000,
    },
    clock: options.clock ?? systemClock,
    logger,
  });
  const subscribers = new VirtualSubscribers({
    bus,
    subjects,
    directory,
    dispatch: (delivery, agentId) => calls.dispatch(delivery, agentId),
  });
  const direct = bus.subscribe(subjects.dispatchNode(nodeId), (delivery) =>
    calls.dispatch(delivery, delivery.headers[BusHeader.agent] ?? ''),
  );

  async function drain(withinMs: number): Promise<void> {
    await Promise.all([subscribers.drain(withinMs), direct.drain(withinMs)]);
    calls.failAll(SHUTTING_DOWN);
    await client.destroy();
  }

  let drained: Promise<void> | undefined;
  return {
    drain: (withinMs) => (drained ??= drain(withinMs)),
    inHand: () => calls.inHand,
    activeStreams: (agentId) => calls.streams.get(agentId) ?? 0,
    streams: calls.streams,
    subscribers: () => subscribers.size,
  };
}
