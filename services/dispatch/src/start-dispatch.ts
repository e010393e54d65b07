import { BusHeader } from '@patchbay/bus';
import type { Bus, Subjects } from '@patchbay/bus';
import { ByteBudget, systemClock } from '@patchbay/core';
import type { Clock } from '@patchbay/core';
import type { Directory, Membership } from '@patchbay/directory';
import type { Logger } from '@patchbay/telemetry';
import { createAgentClient } from './agent-client.js';
import type { AgentFailure } from './agent-failure.js';
import { CallDispatcher } from './call-dispatcher.js';
import { AgentSlots } from './concurrency-limit.js';
import { LimitShare } from './limit-share.js';
import { VirtualSubscribers } from './virtual-subscribers.js';

/** Settings of {@link startDispatch}. */
export interface DispatchOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly directory: Directory;
  readonly nodeId: string;
  readonly logger: Logger;
  /** Who else is there. Absent: nobody. */
  readonly membership?: Membership;
  /** So long the node listens for others before it takes calls, milliseconds. Default 1,500; 0 where nobody can be. */
  readonly settleMs?: number;
  /** Calls in hand for each agent in the whole cluster, unary and streams together. Default 100. */
  readonly agentConcurrency?: number;
  /** Largest reply and largest event, bytes. Default 10,485,760. */
  readonly maxResponseBytes?: number;
  /** The process's bound for what it holds for clients. Default: one of its own with the default size. */
  readonly budget?: ByteBudget;
  /** Longest silence of an agent within a stream, milliseconds. Default 900,000. */
  readonly streamIdleMs?: number;
  /** Time for a connection to an agent to be made, milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number;
  readonly clock?: Clock;
}

/** A running dispatch. */
export interface DispatchService {
  /** Resolves when agents are served: in a cluster once this node has its share of their limits, or after 3 s. */
  readonly ready: Promise<void>;
  /**
   * Takes no new calls (fronts are sent elsewhere), waits for those in hand, and after `withinMs` milliseconds fails the rest with `draining`.
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
  const { bus, subjects, directory, nodeId, logger, membership, settleMs = 1_500 } = options;
  const clock = options.clock ?? systemClock;
  const limit = options.agentConcurrency ?? 100;
  const share = membership === undefined ? undefined : new LimitShare({ membership, limit, settleMs, clock });
  const slots = new AgentSlots(share ?? { size: limit });
  const stopTelling = membership?.onTick(() => membership.report({ free_slots: slots.free }));
  const client = createAgentClient({ connectTimeoutMs: options.connectTimeoutMs ?? 5_000 });
  const calls = new CallDispatcher({
    directory,
    client,
    limit: slots,
    nodeId,
    streams: {
      maxResponseBytes: options.maxResponseBytes ?? 10_485_760,
      budget: options.budget ?? new ByteBudget(),
      idleMs: options.streamIdleMs ?? 900_000,
    },
    clock,
    logger,
  });
  let subscribers: VirtualSubscribers | undefined;
  // Not before there is a share: the queue would bring calls, and plain clients of the bus cannot take them elsewhere.
  function serve(): void {
    if (drained !== undefined) return;
    subscribers = new VirtualSubscribers({
      bus,
      subjects,
      directory,
      dispatch: (delivery, agentId) => calls.dispatch(delivery, agentId),
    });
  }
  const direct = bus.subscribe(subjects.dispatchNode(nodeId), (delivery) =>
    calls.dispatch(delivery, delivery.headers[BusHeader.agent] ?? ''),
  );

  async function drain(withinMs: number): Promise<void> {
    calls.refuseNew(SHUTTING_DOWN);
    await Promise.all([subscribers?.drain(withinMs), direct.drain(withinMs)]);
    calls.failAll(SHUTTING_DOWN);
    stopTelling?.();
    share?.leave();
    await client.destroy();
  }

  let drained: Promise<void> | undefined;
  let ready = Promise.resolve();
  if (share === undefined || share.isReady) serve();
  else ready = share.ready.then(serve);
  return {
    ready,
    drain: (withinMs) => (drained ??= drain(withinMs)),
    inHand: () => calls.inHand,
    activeStreams: (agentId) => calls.streams.get(agentId) ?? 0,
    streams: calls.streams,
    subscribers: () => subscribers?.size ?? 0,
  };
}
