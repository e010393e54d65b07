import type { RegistryEvent } from '@patchbay/agent-card';
import { DisconnectedError, MemoryBus, Subjects } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import { silentLogger } from '@patchbay/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventAnnouncer } from './event-announcer.js';

let bus: MemoryBus;
let committed: RegistryEvent[];
let isDown: boolean;
let applied: number[];
let published: string[];
let noticed: number[];
let appliedRevision: number;
let announcer: EventAnnouncer;

beforeEach(() => {
  bus = new MemoryBus();
  committed = [];
  isDown = false;
  applied = [];
  published = [];
  noticed = [];
  appliedRevision = 0;
  bus.subscribe('patchbay.events.>', ({ subject }) => void published.push(subject));
  announcer = new EventAnnouncer({
    bus,
    subjects: new Subjects(),
    store: {
      head: () => {
        if (isDown) return Promise.reject(new PatchbayError('store_unavailable', 'the database is away'));
        return Promise.resolve({ revision: committed.length, agentCount: 0, prunedTo: 0 });
      },
      eventsAfter: (revision, limit) => Promise.resolve(committed.slice(revision, revision + limit)),
    },
    directory: {
      get revision() {
        return appliedRevision;
      },
    },
    replica: {
      applyLocally: (events) => applied.push(...events.map((event) => event.revision)),
      noticeHead: (revision) => noticed.push(revision),
    },
    nodeId: 'me',
    logger: silentLogger(),
  });
});

afterEach(async () => {
  await bus.close();
});

function commit(nodeId: string): RegistryEvent {
  const revision = committed.length + 1;
  const agentId = `agent-${revision}`;
  const event: RegistryEvent = { v: 1, revision, kind: 'deregistered', agentId, agent: null, atMs: 0, nodeId };
  committed.push(event);
  return event;
}

describe('EventAnnouncer', () => {
  it('publishes events and applies them here', async () => {
    announcer.announce([commit('me'), commit('me')]);
    announcer.announce([]);
    await bus.flush();
    expect(applied).toEqual([1, 2]);
    expect(published).toEqual(['patchbay.events.deregistered.agent-1', 'patchbay.events.deregistered.agent-2']);
  });

  it('applies them here when they cannot be published', () => {
    bus.publish = () => {
      throw new DisconnectedError();
    };
    announcer.announce([commit('me')]);
    expect(applied).toEqual([1]);
  });

  it('has nothing to settle as long as every outcome is known', async () => {
    isDown = true;
    await announcer.settleUnknown();
    expect(noticed).toEqual([]);
  });

  it('announces what it committed without knowing, and leaves to others what is theirs', async () => {
    announcer.announce([commit('me')]);
    appliedRevision = 1;
    announcer.noteUnknownOutcome();
    commit('other');
    for (let index = 0; index < 600; index += 1) commit('me');
    applied.length = 0;
    await Promise.all([announcer.settleUnknown(), announcer.settleUnknown()]);
    expect(applied).toEqual(Array.from({ length: 600 }, (_, index) => index + 3));
    expect(noticed).toEqual([602]);
    await announcer.settleUnknown();
    expect(applied).toHaveLength(600);
  });

  it('keeps the question open while the database is away', async () => {
    announcer.noteUnknownOutcome();
    commit('me');
    isDown = true;
    await expect(announcer.settleUnknown()).rejects.toMatchObject({ code: 'store_unavailable' });
    isDown = false;
    await announcer.settleUnknown();
    expect(applied).toEqual([1]);
  });
});
