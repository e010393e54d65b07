import { groupBySize } from '@patchbay/service-api';
import type { ChangesChunk } from '@patchbay/service-api';
import type { RegistryStore } from '@patchbay/store';

const CHUNK_BYTES = 256 * 1024;
const EVENTS_PER_QUERY = 500;
/** Further behind than this, a snapshot is cheaper, unless there are even more agents. */
const MAX_EVENTS = 10_000;

/** What happened after `since`, in chunks of about 256 KB: events, or the whole state when they are gone or too many. */
export async function* readChanges(store: RegistryStore, since: number): AsyncIterable<ChangesChunk> {
  const head = await store.head();
  const behind = head.revision - since;
  if (behind === 0) {
    yield { kind: 'head', revision: head.revision };
    return;
  }
  // Less than nothing behind is another history; nothing known is a node that starts, which needs no history.
  const isFewEnough = behind > 0 && behind <= Math.max(MAX_EVENTS, head.agentCount);
  if (since > 0 && isFewEnough && since >= head.prunedTo) {
    const reached = yield* readEvents(store, since, head.revision);
    if (reached === head.revision) {
      yield { kind: 'head', revision: head.revision };
      return;
    }
  }
  yield* readSnapshot(store);
}

/** @returns the revision reached: less than `head` when the events were pruned meanwhile. */
async function* readEvents(store: RegistryStore, since: number, head: number): AsyncGenerator<ChangesChunk, number> {
  let at = since;
  while (at < head) {
    const events = await store.eventsAfter(at, Math.min(EVENTS_PER_QUERY, head - at));
    const last = events?.at(-1);
    if (events === null || last === undefined) return at;
    for (const group of groupBySize(events, CHUNK_BYTES, jsonSize)) yield { kind: 'events', events: group };
    at = last.revision;
  }
  return at;
}

async function* readSnapshot(store: RegistryStore): AsyncIterable<ChangesChunk> {
  const { head, agents } = await store.snapshot();
  yield { kind: 'snapshot', revision: head.revision };
  for (const group of groupBySize(agents, CHUNK_BYTES, jsonSize)) yield { kind: 'agents', agents: group };
  yield { kind: 'head', revision: head.revision };
}

function jsonSize(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}
