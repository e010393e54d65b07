import { BusHeader } from '@patchbay/bus';
import type { Bus, Subjects } from '@patchbay/bus';
import type { RegistryEvent } from '@patchbay/agent-card';
import { encodeBody } from './json-body.js';

/** Largest message of the replication subject: well under a stock server's limit of 1 MiB. */
const MAX_MESSAGE_BYTES = 512 * 1024;

/** A node's word that its directory holds everything up to a revision. */
export interface ReplicaAck {
  readonly v: 1;
  readonly nodeId: string;
  readonly revision: number;
}

/**
 * Tells the world of committed events, in revision order: arrays for the nodes' directories, then one message each
 * for whoever watches. An event too large for one message is not sent; directories fetch it when they see the gap or
 * the next beat. The table is the safe way, so a caller logs what this throws and goes on.
 */
export function publishEvents(bus: Bus, subjects: Subjects, events: readonly RegistryEvent[]): void {
  const encoded = events
    .map((event) => ({ event, body: encodeBody(event) }))
    .filter(({ body }) => body.length <= MAX_MESSAGE_BYTES);
  for (const group of groupBySize(encoded, MAX_MESSAGE_BYTES, ({ body }) => body.length + 1)) {
    bus.publish(subjects.replication, joinArray(group.map(({ body }) => body)));
  }
  for (const { event, body } of encoded) {
    const headers = event.traceparent === undefined ? {} : { [BusHeader.traceparent]: event.traceparent };
    bus.publish(subjects.event(event.reason ?? event.kind, event.agentId), body, headers);
  }
}

/** Cuts a list into groups of at most `maxSize`; an item that is larger alone makes a group of its own. */
export function groupBySize<T>(items: readonly T[], maxSize: number, sizeOf: (item: T) => number): T[][] {
  const groups: T[][] = [];
  let room = 0;
  for (const item of items) {
    const size = sizeOf(item);
    const current = groups.at(-1);
    if (current === undefined || size > room) {
      groups.push([item]);
      room = maxSize - size;
    } else {
      current.push(item);
      room -= size;
    }
  }
  return groups;
}

function joinArray(bodies: readonly Uint8Array[]): Uint8Array {
  const comma = Buffer.from(',');
  const parts = bodies.flatMap((body, index) => (index === 0 ? [body] : [comma, body]));
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]);
}
