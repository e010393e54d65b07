import { NoRespondersError } from '@patchbay/bus';
import type { Bus, Message, RequestOptions } from '@patchbay/bus';

/**
 * Ids of the nodes to ask by name, in order, while the queue group holds one that does not answer; empty otherwise.
 */
export type Detour = () => readonly string[];

/** No node is ever asked by name. */
export const NO_DETOUR: Detour = () => [];

/** Where one operation of a service is asked for: its queue group, or one node by name. */
export interface ServiceSubject {
  readonly queue: string;
  readonly ofNode: (nodeId: string) => string;
}

/** Asks a service, by-passing nodes that do not answer. @throws PatchbayError as `Bus.request` does */
export async function askService(
  bus: Bus,
  subject: ServiceSubject,
  body: Uint8Array,
  options: RequestOptions & { readonly detour: Detour },
): Promise<Message> {
  const { detour, ...request } = options;
  for (const nodeId of detour()) {
    try {
      return await bus.request(subject.ofNode(nodeId), body, request);
    } catch (error) {
      // It has just left: nothing was asked of it.
      if (!(error instanceof NoRespondersError)) throw error;
    }
  }
  return await bus.request(subject.queue, body, request);
}
