import { BusHeader, DeadlineExceededError, NoRespondersError, RemoteError } from '@patchbay/bus';
import type { Bus, Headers, Subjects } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Directory, ServiceNodes } from '@patchbay/directory';
import type { DispatcherRetry } from './dispatcher-retry.js';

/** What of a call decides where it goes. */
export interface RoutedCall {
  readonly agentId: string;
  readonly headers: Headers;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Carries a call out on one subject. Rejects, and never throws: {@link CallRouter.run} does not wait for it. */
export type Attempt<T> = (subject: string, headers: Headers, timeoutMs: number) => Promise<T>;

/** What {@link CallRouter} needs. */
export interface CallRouterOptions {
  readonly bus: Pick<Bus, 'isUp'>;
  readonly subjects: Subjects;
  readonly directory: Pick<Directory, 'get'>;
  readonly retry: DispatcherRetry;
  /** Absent: there is one node. */
  readonly nodes: Pick<ServiceNodes, 'isImpaired' | 'inTurn' | 'mostFreeFirst' | 'noteLoss'> | undefined;
  /** Calls of known agents are served in this process, without the queue group. */
  readonly isServedHere: boolean;
}

/** A node that answers one of these with its name has sent nothing to the agent. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['concurrency_exceeded', 'draining']);

/**
 * Brings a call to a node that takes it. Usually the agent's own subject does: some node of its queue group answers.
 *
 * A node that has no slot left, or shuts down, refuses; then the others are asked directly, each once. While a node is
 * silent, all calls go directly to those that are not. No call is tried again once it may have reached the agent.
 */
export class CallRouter {
  readonly #options: CallRouterOptions;

  constructor(options: CallRouterOptions) {
    this.#options = options;
  }

  /** Hot path. @throws PatchbayError what the last attempt threw, and as {@link DispatcherRetry} does */
  run<T>(call: RoutedCall, attempt: Attempt<T>): Promise<T> {
    const { nodes, subjects } = this.#options;
    const endMs = performance.now() + call.timeoutMs;
    if (nodes !== undefined && nodes.isImpaired && !this.#isServedHere(call.agentId)) {
      return this.#runDirectly(call, attempt, nodes.inTurn(), endMs);
    }
    return attempt(subjects.agent(call.agentId), call.headers, call.timeoutMs).catch((error: unknown) =>
      this.#runAgain(call, attempt, error, endMs),
    );
  }

  #isServedHere(agentId: string): boolean {
    return this.#options.isServedHere && this.#options.directory.get(agentId) !== undefined;
  }

  async #runDirectly<T>(call: RoutedCall, attempt: Attempt<T>, ids: readonly string[], endMs: number): Promise<T> {
    try {
      return await this.#offer(call, attempt, ids, endMs);
    } catch (error) {
      // None of them was there: what that means for the agent is found out the usual way.
      if (!(error instanceof NoRespondersError)) throw error;
      return await this.#runAgain(call, attempt, error, endMs);
    }
  }

  /** Goes on after `error` when nothing was sent to the agent. */
  async #runAgain<T>(call: RoutedCall, attempt: Attempt<T>, error: unknown, endMs: number): Promise<T> {
    let failure = error;
    if (isLoss(error)) this.#options.nodes?.noteLoss();
    if (failure instanceof NoRespondersError) {
      const { subjects, retry } = this.#options;
      const subject = subjects.agent(call.agentId);
      try {
        return await retry.run(call.agentId, endMs, call.signal, (leftMs) => attempt(subject, call.headers, leftMs));
      } catch (retried) {
        failure = retried;
      }
    }
    const refuser = refuserOf(failure);
    const { nodes, bus } = this.#options;
    // A link that is down would put its own error in the place of the refusal.
    if (refuser === undefined || nodes === undefined || !bus.isUp) throw failure;
    const others = nodes.mostFreeFirst().filter((nodeId) => nodeId !== refuser);
    return this.#offer(call, attempt, others, endMs, failure);
  }

  /**
   * Asks nodes one after the other, as long as they refuse. @throws what the last of them said, `refusal` when none said
   * anything, NoRespondersError when there is no such
   */
  async #offer<T>(
    call: RoutedCall,
    attempt: Attempt<T>,
    ids: readonly string[],
    endMs: number,
    refusal?: unknown,
  ): Promise<T> {
    const { subjects } = this.#options;
    let failure: unknown = refusal ?? new NoRespondersError(subjects.agent(call.agentId));
    const headers = { ...call.headers, [BusHeader.agent]: call.agentId };
    for (const nodeId of ids) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw new DeadlineExceededError(subjects.agent(call.agentId), call.timeoutMs);
      try {
        return await attempt(subjects.dispatchNode(nodeId), headers, leftMs);
      } catch (error) {
        if (error instanceof NoRespondersError) continue;
        if (!isRefusal(error)) throw error;
        failure = weightier(failure, error);
      }
    }
    throw failure;
  }
}

/** The node that refused a call before anything was sent to the agent; undefined for every other error. */
function refuserOf(error: unknown): string | undefined {
  return error instanceof RemoteError && REFUSALS.has(error.code) ? error.headers[BusHeader.node] : undefined;
}

/** Whether nobody gave a sign of life, although somebody should have had the call. */
function isLoss(error: unknown): boolean {
  return error instanceof PatchbayError && error.code === 'node_lost' && !(error instanceof RemoteError);
}

/** Whether the node addressed did not take the call; one that does not know the agent may lag behind. */
function isRefusal(error: unknown): boolean {
  return refuserOf(error) !== undefined || (error instanceof RemoteError && error.code === 'agent_not_found');
}

/** What of two refusals the caller hears: of an agent that is busy rather than of nodes that leave or lag behind. */
function weightier(before: unknown, error: unknown): unknown {
  const isBusy = before instanceof RemoteError && before.code === 'concurrency_exceeded';
  return isBusy ? before : error;
}
