import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import type { ChangesChunk } from '@patchbay/service-api';
import type { RegistryHead, RegistryStore } from '@patchbay/store';
import { describe, expect, it } from 'vitest';
import { readChanges } from './read-changes.js';

function unused(): never {
  throw new Error('only reading is expected');
}

/** As much of a store as a reader of changes needs: `count` agents, each of about 1 KB, registered one after another. */
function storeOf(count: number, prunedTo = 0): RegistryStore {
  const head: RegistryHead = { revision: count, agentCount: count, prunedTo };
  const agents = Array.from({ length: count }, (_, index) => agentOf(index + 1));
  const events = agents.map(eventOf);
  return {
    write: unused,
    get: unused,
    prune: unused,
    head: () => Promise.resolve(head),
    eventsAfter: (revision, limit) =>
      Promise.resolve(revision < prunedTo ? null : events.slice(revision, revision + limit)),
    snapshot: () => Promise.resolve({ head, agents }),
  };
}

function agentOf(ordinal: number): RegisteredAgent {
  const record = {
    agentId: `agent-${ordinal}`,
    dialect: 'kubemq' as const,
    name: 'A',
    description: 'd'.repeat(700),
    version: '',
    url: 'http://localhost/',
    skills: [],
    defaultInputModes: [],
    defaultOutputModes: [],
    protocolVersions: [],
    interfaces: [],
    extra: {},
  };
  return { record, ordinal, revision: ordinal, registeredAtMs: 0, lastSeenMs: 0 };
}

function eventOf(agent: RegisteredAgent): RegistryEvent {
  const { agentId } = agent.record;
  return { v: 1, revision: agent.revision, kind: 'registered', agentId, agent, atMs: 0, nodeId: 'n' };
}

async function collect(store: RegistryStore, since: number): Promise<ChangesChunk[]> {
  const chunks: ChangesChunk[] = [];
  for await (const chunk of readChanges(store, since)) chunks.push(chunk);
  return chunks;
}

function revisionsOf(chunks: readonly ChangesChunk[]): number[] {
  return chunks.flatMap((chunk) => (chunk.kind === 'events' ? chunk.events.map((event) => event.revision) : []));
}

describe('readChanges', () => {
  it('says only where the head is when there is nothing new', async () => {
    expect(await collect(storeOf(5), 5)).toEqual([{ kind: 'head', revision: 5 }]);
    expect(await collect(storeOf(0), 0)).toEqual([{ kind: 'head', revision: 0 }]);
  });

  it('gives the events that are missing, in chunks of at most 256 KB', async () => {
    const chunks = await collect(storeOf(1_200), 100);
    expect(revisionsOf(chunks)).toEqual(Array.from({ length: 1_100 }, (_, index) => index + 101));
    expect(chunks.at(-1)).toEqual({ kind: 'head', revision: 1_200 });
    expect(chunks.length).toBeGreaterThan(4);
    for (const chunk of chunks) expect(JSON.stringify(chunk).length).toBeLessThan(257 * 1024);
  });

  it.each([
    ['a node that starts', storeOf(600), 0],
    ['a node that is behind what was pruned', storeOf(600, 50), 49],
    ['a node that knows another history', storeOf(600), 601],
  ])('gives %s the whole state', async (_, store, since) => {
    const chunks = await collect(store, since);
    expect(chunks[0]).toEqual({ kind: 'snapshot', revision: 600 });
    const agents = chunks.flatMap((chunk) => (chunk.kind === 'agents' ? chunk.agents : []));
    expect(agents.map((agent) => agent.ordinal)).toEqual(Array.from({ length: 600 }, (__, index) => index + 1));
    expect(chunks.at(-1)).toEqual({ kind: 'head', revision: 600 });
    for (const chunk of chunks) expect(JSON.stringify(chunk).length).toBeLessThan(257 * 1024);
  });

  it('gives events to a node at the last revision that was pruned', async () => {
    expect(revisionsOf(await collect(storeOf(60, 50), 50))).toHaveLength(10);
  });

  it('falls back to the whole state when events are pruned under way', async () => {
    const store = storeOf(1_200);
    const asked: number[] = [];
    store.eventsAfter = (revision) => {
      asked.push(revision);
      return Promise.resolve(revision === 1 ? [eventOf(agentOf(2))] : null);
    };
    const chunks = await collect(store, 1);
    expect(asked).toEqual([1, 2]);
    expect(chunks.map((chunk) => chunk.kind)).toContain('snapshot');
    expect(chunks.at(-1)).toEqual({ kind: 'head', revision: 1_200 });
  });

  it('prefers the whole state when there are more events than agents', async () => {
    const store = storeOf(3);
    store.head = () => Promise.resolve({ revision: 20_000, agentCount: 3, prunedTo: 0 });
    expect((await collect(store, 1)).map((chunk) => chunk.kind)).toEqual(['snapshot', 'agents', 'head']);
  });
});
