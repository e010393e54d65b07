import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { MemoryBus, Subjects } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeBody } from './json-body.js';
import { LivenessClient, serveBeatFlush, serveLiveness } from './liveness-api.js';
import { RegistryClient, serveRegistry } from './registry-api.js';
import type { ChangesChunk } from './registry-api.js';
import { groupBySize, publishEvents } from './replication.js';

const subjects = new Subjects();
let bus: MemoryBus;

beforeEach(() => {
  bus = new MemoryBus();
});

afterEach(async () => {
  await bus.close();
});

function agentOf(agentId: string, description = ''): RegisteredAgent {
  const record = {
    agentId,
    dialect: 'kubemq' as const,
    name: agentId,
    description,
    version: '',
    url: 'http://localhost/',
    skills: [],
    defaultInputModes: [],
    defaultOutputModes: [],
    protocolVersions: [],
    interfaces: [],
    extra: {},
  };
  return { record, ordinal: 1, revision: 1, registeredAtMs: 0, lastSeenMs: 0 };
}

function eventOf(revision: number, description = ''): RegistryEvent {
  const agentId = `agent-${revision}`;
  return {
    v: 1,
    revision,
    kind: 'registered',
    agentId,
    agent: agentOf(agentId, description),
    atMs: 0,
    nodeId: 'n',
  };
}

function refuse(): Promise<never> {
  return Promise.reject(new PatchbayError('agent_limit_reached', 'no room'));
}

describe('publishEvents', () => {
  let arrays: { size: number; revisions: number[] }[];
  let single: string[];

  beforeEach(() => {
    arrays = [];
    single = [];
    bus.subscribe(subjects.replication, ({ body }) => {
      const revisions = decodeBody<RegistryEvent[]>(body).map((event) => event.revision);
      arrays.push({ size: body.length, revisions });
    });
    bus.subscribe('patchbay.events.>', ({ subject, body, headers }) => {
      single.push(`${subject} ${decodeBody<RegistryEvent>(body).revision} ${headers['traceparent'] ?? '-'}`);
    });
  });

  it('sends arrays of at most 512 KB, and one message each', async () => {
    const events = Array.from({ length: 300 }, (_, index) => eventOf(index + 1, 'd'.repeat(4_000)));
    publishEvents(bus, subjects, events);
    await bus.flush();
    expect(arrays.length).toBeGreaterThan(1);
    for (const { size } of arrays) expect(size).toBeLessThanOrEqual(512 * 1024 + 2);
    expect(arrays.flatMap(({ revisions }) => revisions)).toEqual(events.map((event) => event.revision));
    expect(single).toHaveLength(300);
    expect(single[0]).toBe('patchbay.events.registered.agent-1 1 -');
  });

  it('names an expiry as one, and passes the trace on', async () => {
    const gone: RegistryEvent = { ...eventOf(1), kind: 'deregistered', agent: null, reason: 'expired' };
    publishEvents(bus, subjects, [{ ...gone, traceparent: '00-aa-bb-01' }]);
    await bus.flush();
    expect(single).toEqual(['patchbay.events.expired.agent-1 1 00-aa-bb-01']);
  });

  it('leaves out an event that no message holds: directories fetch it', async () => {
    publishEvents(bus, subjects, [eventOf(1), eventOf(2, 'd'.repeat(600_000)), eventOf(3)]);
    await bus.flush();
    expect(arrays.map(({ revisions }) => revisions)).toEqual([[1, 3]]);
    expect(single).toHaveLength(2);
  });

  it('sends nothing for nothing', async () => {
    publishEvents(bus, subjects, []);
    await bus.flush();
    expect(arrays).toEqual([]);
  });
});

describe('groupBySize', () => {
  it.each([
    [[], []],
    [
      [3, 3, 3, 3],
      [[3, 3, 3], [3]],
    ],
    [
      [12, 1, 1, 9],
      [[12], [1, 1], [9]],
    ],
    [
      [10, 10],
      [[10], [10]],
    ],
  ])('cuts %j into %j', (sizes, groups) => {
    expect(groupBySize(sizes, 10, (size) => size)).toEqual(groups);
  });
});

describe('the registry over the bus', () => {
  it('passes cards byte for byte, answers, and changes', async () => {
    const chunks: ChangesChunk[] = [
      { kind: 'events', events: [eventOf(6)] },
      { kind: 'head', revision: 6 },
    ];
    const asked: unknown[] = [];
    serveRegistry(bus, subjects, {
      register: (card, { dialect, delivery }) => {
        asked.push([Buffer.from(card).toString(), dialect, delivery.headers['traceparent']]);
        return Promise.resolve(agentOf('echo-01'));
      },
      deregister: (agentId) => {
        asked.push(agentId);
        return Promise.resolve();
      },
      lookup: (agentId) => Promise.resolve(agentId === 'echo-01' ? agentOf(agentId) : null),
      changes: async function* (since) {
        asked.push(since);
        await Promise.resolve();
        yield* chunks;
      },
    });
    const client = new RegistryClient(bus, subjects);
    const headers = { traceparent: 'tp' };
    expect(await client.register(Buffer.from('{ "x":1 }'), 'kubemq', { headers })).toEqual(agentOf('echo-01'));
    await client.deregister('echo-01');
    expect(await client.lookup('echo-01')).toEqual(agentOf('echo-01'));
    expect(await client.lookup('nobody')).toBeNull();
    const seen: ChangesChunk[] = [];
    for await (const chunk of client.changes(5)) seen.push(chunk);
    expect(seen).toEqual(chunks);
    expect(asked).toEqual([['{ "x":1 }', 'kubemq', 'tp'], 'echo-01', 5]);
  });

  it('asks nodes by name while the queue group cannot be trusted', async () => {
    const asked: string[] = [];
    const handlersOf = (nodeId: string): Parameters<typeof serveRegistry>[2] => ({
      register: refuse,
      deregister: refuse,
      lookup: (agentId) => {
        asked.push(`${nodeId} ${agentId}`);
        return Promise.resolve(null);
      },
      changes: async function* () {
        await Promise.resolve();
        yield { kind: 'head', revision: nodeId === 'b' ? 2 : 1 };
      },
    });
    for (const nodeId of ['a', 'b']) serveRegistry(bus, subjects, handlersOf(nodeId), nodeId);
    let names: string[] = [];
    let losses = 0;
    const client = new RegistryClient(bus, subjects, { byName: () => names, noteLoss: () => void losses++ });
    names = ['gone', 'b', 'a'];
    for (const agentId of ['x', 'y']) await client.lookup(agentId);
    expect(asked).toEqual(['b x', 'b y']);
    names = ['b', 'a'];
    const heads: ChangesChunk[] = [];
    for await (const chunk of client.changes(0)) heads.push(chunk);
    expect(heads).toEqual([{ kind: 'head', revision: 2 }]);
    // Nobody can be addressed: the queue group is the last resort.
    names = ['gone'];
    await client.lookup('z');
    expect(asked).toHaveLength(3);
    expect(losses).toBe(0);
  });

  it('asks again what can be repeated, by name, when whoever took it does not answer', async () => {
    const taken: string[] = [];
    const lose = (what: string): Promise<never> => {
      taken.push(what);
      return Promise.reject(new PatchbayError('node_lost', 'gone'));
    };
    const handlersOf = (nodeId: string): Parameters<typeof serveRegistry>[2] => ({
      register: () => (nodeId === 'c' ? Promise.resolve(agentOf('x')) : lose(`register at ${nodeId}`)),
      deregister: () => lose(`deregister at ${nodeId}`),
      lookup: () => lose(`lookup at ${nodeId}`),
      changes: () => ({ [Symbol.asyncIterator]: () => ({ next: () => lose(`changes at ${nodeId}`) }) }),
    });
    serveRegistry(bus, subjects, handlersOf('queue'));
    for (const nodeId of ['a', 'c'])
      bus.subscribe(subjects.registryNode(nodeId, 'register'), async ({ exchange }) => {
        const agent = await handlersOf(nodeId).register(Buffer.from(''), {} as never);
        exchange?.reply(Buffer.from(JSON.stringify(agent)));
      });
    let names: string[] = [];
    const noteLoss = (): void => void (names = ['a', 'b', 'c']);
    const client = new RegistryClient(bus, subjects, { byName: () => names, noteLoss });
    expect(await client.register(Buffer.from(''), 'kubemq')).toEqual(agentOf('x'));
    expect(taken.splice(0)).toEqual(['register at queue', 'register at a']);
    names = [];
    await expect(client.deregister('x')).rejects.toMatchObject({ code: 'node_lost' });
    expect(taken.splice(0)).toEqual(['deregister at queue']);
    expect(names).toHaveLength(3);
    names = [];
    await expect(client.changes(0)[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'node_lost' });
    expect(names).toHaveLength(3);
  });

  it('passes errors with code and message', async () => {
    serveRegistry(bus, subjects, {
      register: refuse,
      deregister: refuse,
      lookup: refuse,
      changes: () => ({ [Symbol.asyncIterator]: () => ({ next: refuse }) }),
    });
    const client = new RegistryClient(bus, subjects);
    const error = { code: 'agent_limit_reached', message: 'no room' };
    await expect(client.register(Buffer.from(''), 'kubemq')).rejects.toMatchObject(error);
    await expect(client.deregister('x')).rejects.toMatchObject(error);
    const changes = client.changes(0)[Symbol.asyncIterator]();
    await expect(changes.next()).rejects.toMatchObject(error);
  });
});

describe('liveness over the bus', () => {
  it('passes heartbeats, and requests to one node to write its beats', async () => {
    serveLiveness(bus, subjects, { heartbeat: (agentId) => Promise.resolve({ agentId, lastSeenMs: 5 }) });
    const flushed: string[] = [];
    for (const nodeId of ['a', 'b']) {
      serveBeatFlush(bus, subjects, nodeId, () => {
        flushed.push(nodeId);
        if (nodeId === 'a') return Promise.resolve();
        return Promise.reject(new PatchbayError('store_unavailable', 'the database is away'));
      });
    }
    const client = new LivenessClient(bus, subjects);
    expect(await client.heartbeat('echo-01')).toEqual({ agentId: 'echo-01', lastSeenMs: 5 });
    await client.flushBeats('a');
    expect(flushed).toEqual(['a']);
    await expect(client.flushBeats('b')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(client.flushBeats('c')).rejects.toMatchObject({ code: 'no_dispatcher' });
  });
});
