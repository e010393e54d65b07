import { MemoryBus, Subjects } from '@patchbay/bus';
import type { Member, NodeBeat } from '@patchbay/directory';
import { encodeBody } from '@patchbay/service-api';
import { silentLogger } from '@patchbay/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AckTracker } from './ack-tracker.js';

const subjects = new Subjects();

/** Membership as the tracker sees it. */
class FakeMembership {
  readonly nodeId = 'me';
  readonly beatListeners = new Set<(beat: NodeBeat) => void>();
  readonly changeListeners = new Set<() => void>();
  #members: Member[] = [];

  set(...names: string[]): void {
    this.#members = ['me', ...names].map((name) => ({
      beat: beatOf(name.replace('?', '')),
      isSuspect: name.endsWith('?'),
    }));
    for (const listener of this.changeListeners) listener();
  }

  beat(nodeId: string, revision: number, incarnation = '1'): void {
    const beat = { ...beatOf(nodeId), applied_revision: revision, incarnation };
    for (const listener of this.beatListeners) listener(beat);
  }

  members(): Member[] {
    return this.#members;
  }

  onBeat(listener: (beat: NodeBeat) => void): () => void {
    this.beatListeners.add(listener);
    return () => this.beatListeners.delete(listener);
  }

  onChange(listener: () => void): () => void {
    this.changeListeners.add(listener);
    return () => this.changeListeners.delete(listener);
  }
}

function beatOf(nodeId: string): NodeBeat {
  return {
    v: 1,
    node_id: nodeId,
    incarnation: '1',
    version: '0',
    services: [],
    applied_revision: 0,
    epoch: 0,
    draining: false,
    free_slots: 0,
    bus: true,
    store: true,
  };
}

let bus: MemoryBus;
let membership: FakeMembership;
let tracker: AckTracker;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  bus = new MemoryBus();
  membership = new FakeMembership();
  membership.set();
  tracker = new AckTracker({ bus, subjects, membership, logger: silentLogger() });
});

afterEach(async () => {
  await tracker.stop();
  await bus.close();
  vi.useRealTimers();
});

async function ack(nodeId: string, revision: number): Promise<void> {
  bus.publish(subjects.acks(nodeId), encodeBody({ v: 1, nodeId, revision }));
  await bus.flush();
}

function watch(revision: number): { isOver: boolean } {
  const watched = { isOver: false };
  void tracker.waitFor(revision, 250).then(() => (watched.isOver = true));
  return watched;
}

describe('AckTracker', () => {
  it('waits for nobody when this node is alone', async () => {
    await tracker.waitFor(7, 250);
  });

  it('waits until every other node has acknowledged', async () => {
    membership.set('b', 'c');
    await ack('b', 6);
    const waiting = watch(7);
    await ack('b', 7);
    await ack('c', 6);
    expect(waiting.isOver).toBe(false);
    await ack('c', 8);
    expect(waiting.isOver).toBe(true);
  });

  it('takes the revision of a beat for an acknowledgement', async () => {
    membership.set('b');
    const waiting = watch(7);
    membership.beat('b', 7);
    await bus.flush();
    expect(waiting.isOver).toBe(true);
  });

  it('does not wait for suspects, nor for a node that becomes one', async () => {
    membership.set('b?');
    await tracker.waitFor(7, 250);
    membership.set('b');
    const waiting = watch(7);
    membership.set('b?');
    await bus.flush();
    expect(waiting.isOver).toBe(true);
  });

  it('gives up after the time, and does not wait for that node again before it has caught up', async () => {
    membership.set('b');
    const first = watch(7);
    await vi.advanceTimersByTimeAsync(249);
    expect(first.isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(first.isOver).toBe(true);
    await tracker.waitFor(8, 250);
    await ack('b', 7);
    const again = watch(9);
    await bus.flush();
    expect(again.isOver).toBe(false);
    await ack('b', 9);
    expect(again.isOver).toBe(true);
  });

  it('forgets what a node had acknowledged before it was restarted', async () => {
    membership.set('b');
    membership.beat('b', 7, '1');
    membership.beat('b', 0, '2');
    const waiting = watch(7);
    await bus.flush();
    expect(waiting.isOver).toBe(false);
  });

  it('lets everybody go when it is stopped', async () => {
    membership.set('b');
    const waiting = watch(7);
    await tracker.stop();
    expect(waiting.isOver).toBe(true);
    expect(membership.beatListeners.size + membership.changeListeners.size).toBe(0);
  });
});
