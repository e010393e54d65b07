import { MemoryBus, Subjects } from '@patchbay/bus';
import type { RegisteredAgent, RegistryEvent } from '@patchbay/agent-card';
import { PatchbayError } from '@patchbay/core';
import { decodeBody, encodeBody, publishEvents, RegistryClient, serveRegistry } from '@patchbay/service-api';
import type { ChangesChunk, ReplicaAck } from '@patchbay/service-api';
import { silentLogger } from '@patchbay/telemetry';
import { eventually } from '@patchbay/testkit';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Directory } from './directory.js';
import { DirectoryReplica } from './directory-replica.js';
import { Membership } from './membership.js';

const subjects = new Subjects();

/** A registry in memory that answers `changes` as the real one does; what happens there is not published. */
class FakeRegistry {
  readonly events: RegistryEvent[] = [];
  readonly asked: number[] = [];
  prunedTo = 0;
  isDown = false;
  /** Called in the middle of a snapshot, after it was read. */
  duringSnapshot = (): void => {};

  get head(): number {
    return this.events.length;
  }

  register(agentId: string): RegistryEvent {
    return this.#append(agentId, (revision) => {
      const known = this.agents().find(({ record }) => record.agentId === agentId);
      return agentOf(agentId, known?.ordinal ?? revision, revision);
    });
  }

  deregister(agentId: string): RegistryEvent {
    return this.#append(agentId, () => null);
  }

  agents(): RegisteredAgent[] {
    const agents = new Map<string, RegisteredAgent>();
    for (const { agentId, agent } of this.events) {
      if (agent === null) agents.delete(agentId);
      else agents.set(agentId, agent);
    }
    return [...agents.values()].toSorted((a, b) => a.ordinal - b.ordinal);
  }

  async *changes(since: number): AsyncIterable<ChangesChunk> {
    this.asked.push(since);
    if (this.isDown) throw new PatchbayError('store_unavailable', 'the database is away');
    const head = this.head;
    if (since < head && since > 0 && since >= this.prunedTo) {
      for (const event of this.events.slice(since)) yield { kind: 'events', events: [event] };
    } else if (since !== head) {
      const agents = this.agents();
      yield { kind: 'snapshot', revision: head };
      this.duringSnapshot();
      for (const agent of agents) yield { kind: 'agents', agents: [agent] };
    }
    yield { kind: 'head', revision: head };
    await Promise.resolve();
  }

  #append(agentId: string, agentAt: (revision: number) => RegisteredAgent | null): RegistryEvent {
    const revision = this.head + 1;
    const agent = agentAt(revision);
    const kind = agent === null ? 'deregistered' : agent.ordinal === revision ? 'registered' : 'updated';
    const event: RegistryEvent = { v: 1, revision, kind, agentId, agent, atMs: 0, nodeId: 'writer' };
    this.events.push(event);
    return event;
  }
}

function agentOf(agentId: string, ordinal: number, revision: number): RegisteredAgent {
  const record = {
    agentId,
    dialect: 'kubemq' as const,
    name: agentId,
    description: '',
    version: '',
    url: 'http://localhost/',
    skills: [],
    defaultInputModes: [],
    defaultOutputModes: [],
    protocolVersions: [],
    interfaces: [],
    extra: {},
  };
  return { record, ordinal, revision, registeredAtMs: 1_000, lastSeenMs: 1_000 };
}

let bus: MemoryBus;
let registry: FakeRegistry;
let directory: Directory;
let acks: number[];
let endings: (() => Promise<void>)[];

beforeEach(() => {
  bus = new MemoryBus();
  registry = new FakeRegistry();
  directory = new Directory();
  acks = [];
  endings = [];
  bus.subscribe(subjects.acks('*'), ({ body }) => void acks.push(decodeBody<ReplicaAck>(body).revision));
});

afterEach(async () => {
  vi.useRealTimers();
  for (const end of endings) await end();
  await bus.close();
});

function serve(): void {
  serveRegistry(bus, subjects, {
    register: () => Promise.reject(new Error('not served here')),
    deregister: () => Promise.reject(new Error('not served here')),
    lookup: () => Promise.resolve(null),
    changes: (since) => registry.changes(since),
  });
}

function newReplica(membership?: Membership): DirectoryReplica {
  const replica = new DirectoryReplica({
    bus,
    subjects,
    directory,
    registry: new RegistryClient(bus, subjects),
    nodeId: 'reader',
    logger: silentLogger(),
    ...(membership === undefined ? {} : { membership }),
  });
  endings.push(() => replica.stop());
  return replica;
}

async function follow(membership?: Membership): Promise<DirectoryReplica> {
  serve();
  const replica = newReplica(membership);
  replica.start();
  await replica.ready(5_000);
  return replica;
}

/** From here on timers fire when the test says so. */
function ownTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
}

function listed(): string[] {
  return directory.list().map(({ record }) => record.agentId);
}

async function reaches(revision: number): Promise<void> {
  await eventually(() => directory.revision === revision, { what: `revision ${revision}` });
}

describe('DirectoryReplica', () => {
  it('starts from a snapshot, not from history', async () => {
    registry.register('a1');
    registry.register('b1');
    registry.deregister('a1');
    const changes: string[] = [];
    directory.onChange(({ kind, agent }) => changes.push(`${kind} ${agent.record.agentId}`));
    const replica = await follow();
    expect(listed()).toEqual(['b1']);
    expect(directory.revision).toBe(3);
    expect(changes).toEqual(['added b1']);
    expect(replica.isCaughtUp).toBe(true);
    await eventually(() => acks.includes(3));
  });

  it('applies published events and acknowledges them once per turn of the event loop', async () => {
    await follow();
    await eventually(() => acks.length === 1);
    publishEvents(bus, subjects, [registry.register('a1'), registry.register('b1')]);
    publishEvents(bus, subjects, [registry.register('c1')]);
    await eventually(() => acks.at(-1) === 3);
    expect(listed()).toEqual(['a1', 'b1', 'c1']);
    expect(acks).toEqual([0, 3]);
    expect(registry.asked).toEqual([0]);
  });

  it('takes the same event from both ways once', async () => {
    const replica = await follow();
    const changes: string[] = [];
    directory.onChange(({ kind }) => changes.push(kind));
    const event = registry.register('a1');
    replica.applyLocally([event]);
    expect(listed()).toEqual(['a1']);
    publishEvents(bus, subjects, [event]);
    await bus.flush();
    expect(changes).toEqual(['added']);
  });

  it('puts events in order without asking when the late one comes within 50 ms', async () => {
    const replica = await follow();
    ownTime();
    const [first, second, third] = [registry.register('a1'), registry.register('b1'), registry.register('c1')];
    publishEvents(bus, subjects, [third]);
    publishEvents(bus, subjects, [second]);
    await vi.advanceTimersByTimeAsync(49);
    expect(directory.revision).toBe(0);
    expect(replica.isCaughtUp).toBe(false);
    publishEvents(bus, subjects, [first]);
    await bus.flush();
    expect(listed()).toEqual(['a1', 'b1', 'c1']);
    expect(replica.isCaughtUp).toBe(true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(registry.asked).toEqual([0]);
  });

  it('fetches events that were lost', async () => {
    registry.register('a1');
    await follow();
    registry.register('lost-1');
    registry.deregister('a1');
    publishEvents(bus, subjects, [registry.register('c1')]);
    await reaches(4);
    expect(listed()).toEqual(['lost-1', 'c1']);
    expect(registry.asked).toEqual([0, 1]);
  });

  it('takes a snapshot when what it lacks was pruned, and tells the differences', async () => {
    registry.register('a1');
    registry.register('b1');
    await follow();
    const changes: string[] = [];
    directory.onChange(({ kind, agent }) => changes.push(`${kind} ${agent.record.agentId}`));
    registry.deregister('a1');
    registry.register('b1');
    registry.register('c1');
    registry.prunedTo = 4;
    publishEvents(bus, subjects, [registry.register('d1')]);
    await reaches(6);
    expect(listed()).toEqual(['b1', 'c1', 'd1']);
    expect(changes).toEqual(['removed a1', 'updated b1', 'added c1', 'added d1']);
  });

  it('fetches when it hears of a higher revision, by a look at the head or by a beat', async () => {
    const membership = new Membership({
      bus,
      subjects,
      directory,
      nodeId: 'reader',
      version: '0',
      services: [],
      logger: silentLogger(),
      onConflict: () => {},
    });
    membership.start();
    endings.push(() => membership.stop());
    const replica = await follow(membership);
    registry.register('a1');
    replica.noticeHead(1);
    await reaches(1);
    registry.register('b1');
    const beat = { ...membership.members()[0]?.beat, node_id: 'other', applied_revision: 2 };
    bus.publish(subjects.node('other'), encodeBody(beat));
    await reaches(2);
  });

  it('stops asking for a revision that the registry does not have', async () => {
    const replica = await follow();
    ownTime();
    replica.noticeHead(99);
    expect(replica.isCaughtUp).toBe(false);
    for (let passed = 0; passed < 1_000; passed += 50) await vi.advanceTimersByTimeAsync(50);
    expect(registry.asked).toEqual([0, 0]);
    expect(replica.isCaughtUp).toBe(true);
  });

  it('applies events that come while a snapshot is on its way', async () => {
    registry.register('a1');
    registry.duringSnapshot = () => {
      registry.duringSnapshot = () => {};
      publishEvents(bus, subjects, [registry.register('b1')]);
    };
    await follow();
    await reaches(2);
    expect(listed()).toEqual(['a1', 'b1']);
    expect(registry.asked).toEqual([0]);
  });

  it('does not go back when events overtake a snapshot', async () => {
    registry.register('a1');
    const replica = await follow();
    registry.register('lost-1');
    registry.prunedTo = 2;
    registry.duringSnapshot = () => {
      registry.duringSnapshot = () => {};
      replica.applyLocally([...registry.events.slice(1), registry.register('c1')]);
    };
    replica.noticeHead(2);
    await eventually(() => registry.asked.length === 2 && replica.isCaughtUp);
    await reaches(3);
    expect(listed()).toEqual(['a1', 'lost-1', 'c1']);
  });

  it('takes the state of a registry whose history is another one', async () => {
    for (const agentId of ['a1', 'b1', 'c1']) registry.register(agentId);
    const replica = await follow();
    registry.events.length = 0;
    registry.register('other-1');
    replica.noticeHead(4);
    await reaches(1);
    expect(listed()).toEqual(['other-1']);
    expect(replica.isCaughtUp).toBe(true);
  });

  it('tries until the registry answers, and says meanwhile that it is not ready', async () => {
    registry.register('a1');
    const replica = newReplica();
    replica.start();
    await expect(replica.ready(30)).rejects.toMatchObject({ code: 'deadline_exceeded' });
    expect(replica.isCaughtUp).toBe(false);
    registry.isDown = true;
    serve();
    await eventually(() => registry.asked.length > 0);
    registry.isDown = false;
    await replica.ready(5_000);
    expect(listed()).toEqual(['a1']);
  });

  it('takes beats of other nodes, and its own only when they are answered', async () => {
    registry.register('a1');
    await follow();
    bus.publish(
      subjects.beats('reader'),
      encodeBody({ nodeId: 'reader', beats: [{ agentId: 'a1', lastSeenMs: 9_000 }] }),
    );
    bus.publish(
      subjects.beats('other'),
      encodeBody({ nodeId: 'other', beats: [{ agentId: 'a1', lastSeenMs: 5_000 }] }),
    );
    await bus.flush();
    expect(directory.get('a1')?.lastSeenMs).toBe(5_000);
  });

  it('lets go of whoever waits when it is stopped', async () => {
    const replica = newReplica();
    replica.start();
    const waiting = replica.ready(60_000);
    await Promise.all([replica.stop(), expect(waiting).rejects.toMatchObject({ code: 'cancelled' })]);
  });

  it('ends up equal to the registry, whatever is lost, late, repeated or pruned', async () => {
    const step = fc.record({
      agentId: fc.constantFrom('a1', 'b1', 'c1', 'd1'),
      isGone: fc.boolean(),
      fate: fc.constantFrom('told', 'told', 'lost', 'late', 'twice', 'local', 'pruned'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        bus = new MemoryBus();
        registry = new FakeRegistry();
        directory = new Directory();
        const replica = await follow();
        const late: RegistryEvent[] = [];
        const mirror = new Map<string, RegisteredAgent>();
        directory.onChange((change) => {
          if (change.kind === 'removed') mirror.delete(change.agent.record.agentId);
          else mirror.set(change.agent.record.agentId, change.agent);
        });
        for (const { agentId, isGone, fate } of steps) {
          const event = isGone ? registry.deregister(agentId) : registry.register(agentId);
          if (fate === 'local') replica.applyLocally([event]);
          else if (fate === 'late') late.push(event);
          else if (fate === 'pruned') registry.prunedTo = registry.head;
          else if (fate !== 'lost') publishEvents(bus, subjects, fate === 'twice' ? [event, event] : [event]);
        }
        publishEvents(bus, subjects, late.toReversed());
        await bus.flush();
        replica.noticeHead(registry.head);
        await reaches(registry.head);
        expect(directory.list()).toEqual(registry.agents());
        // Who follows the changes alone, as the virtual subscribers do, has the same agents.
        expect([...mirror.keys()].toSorted()).toEqual(listed().toSorted());
        await replica.stop();
        await bus.close();
      }),
      { numRuns: 40 },
    );
  });
});
