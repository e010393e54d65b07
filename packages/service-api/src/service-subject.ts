import { NoRespondersError } from '@patchbay/bus';
import type { Bus, Message, RequestOptions } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';

/** The nodes of a service, as its callers look at them. */
export interface ServiceRoster {
  /** Ids of the nodes to ask by name, in order, while the queue group cannot be trusted; empty while it can. */
  byName(): readonly string[];
  /** Notes that a request to the queue group met nobody. */
  noteLoss(): void;
}

/** One node, or a queue group that is trusted come what may. */
export const NO_ROSTER: ServiceRoster = { byName: () => [], noteLoss: () => {} };

/** Where one operation of a service is asked for: its queue group, or one node by name. */
export interface ServiceSubject {
  readonly queue: string;
  readonly ofNode: (nodeId: string) => string;
}

/** How {@link askService} asks. */
export interface AskOptions extends RequestOptions {
  readonly roster: ServiceRoster;
  /** Doing it twice is doing it once: asked again when whoever took it does not answer. */
  readonly isRepeatable: boolean;
}

/**
 * Asks a service: its queue group, or nodes by name while that holds one that does not answer.
 * @throws PatchbayError as `Bus.request` does
 */
export async function askService(
  bus: Bus,
  subject: ServiceSubject,
  body: Uint8Array,
  options: AskOptions,
): Promise<Message> {
  const { roster, isRepeatable, ...request } = options;
  const endMs = performance.now() + options.timeoutMs;
  let lost: PatchbayError | undefined;
  if (roster.byName().length === 0) {
    try {
      return await bus.request(subject.queue, body, request);
    } catch (error) {
      if (!isLoss(error)) throw error;
      roster.noteLoss();
      if (!isRepeatable) throw error;
      lost = error;
    }
  }
  for (const nodeId of roster.byName()) {
    const timeoutMs = endMs - performance.now();
    if (timeoutMs <= 0) break;
    try {
      return await bus.request(subject.ofNode(nodeId), body, { ...request, timeoutMs });
    } catch (error) {
      // It has just left: nothing was asked of it.
      if (error instanceof NoRespondersError) continue;
      if (!isLoss(error) || !isRepeatable) throw error;
      lost = error;
    }
  }
  if (lost !== undefined) throw lost;
  return await bus.request(subject.queue, body, request);
}

function isLoss(error: unknown): error is PatchbayError {
  return error instanceof PatchbayError && error.code === 'node_lost';
}
