import { ManualClock } from '@patchbay/core';
import { describe, expect, it } from 'vitest';
import type { Member, NodeBeat } from './node-beat.js';
import { isDispatching } from './node-beat.js';
import { ServiceNodes } from './service-nodes.js';

function member(nodeId: string, change: Partial<NodeBeat> & { isSuspect?: boolean } = {}): Member {
  const { isSuspect = false, ...rest } = change;
  const beat = { v: 1, node_id: nodeId, incarnation: '01', version: '0', services: ['registry'], applied_revision: 0 };
  const state = { epoch: 0, draining: false, free_slots: 0, bus: true, store: true };
  return { beat: { ...beat, ...state, ...rest } as NodeBeat, isSuspect };
}

/** A membership that is what the test says. */
class FakeMembership {
  current: Member[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #ticked = new Set<() => void>();

  members(): Member[] {
    return this.current;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onTick(listener: () => void): () => void {
    this.#ticked.add(listener);
    return () => this.#ticked.delete(listener);
  }

  tick(): void {
    for (const listener of this.#ticked) listener();
  }

  get listeners(): number {
    return this.#listeners.size + this.#ticked.size;
  }

  become(...members: Member[]): void {
    this.current = members;
    for (const listener of this.#listeners) listener();
  }
}

function rig() {
  const membership = new FakeMembership();
  const clock = new ManualClock();
  membership.become(member('a'), member('b'), member('c'), member('d', { services: ['gateway'] }));
  const nodes = new ServiceNodes({ membership, serves: (beat) => beat.services.includes('registry'), clock });
  return { membership, clock, nodes, names: () => nodes.byName().toSorted() };
}

describe('the nodes of a service', () => {
  it('are not addressed by name while all of them answer', () => {
    const { membership, names } = rig();
    expect(names()).toEqual([]);
    membership.become(member('a'), member('b'), member('c'), member('d', { services: ['gateway'], isSuspect: true }));
    expect(names()).toEqual([]);
  });

  it('are addressed in turn while one is silent, without it and without those that leave', () => {
    const { membership, nodes, names } = rig();
    membership.become(member('a'), member('b', { isSuspect: true }), member('c'), member('e', { draining: true }));
    expect(names()).toEqual(['a', 'c']);
    expect(new Set([nodes.byName()[0], nodes.byName()[0]])).toEqual(new Set(['a', 'c']));
    membership.become(member('a'), member('b'), member('c'));
    expect(names()).toEqual([]);
  });

  it('are addressed by name for as long as one that is gone may still be in the queue group', () => {
    const { membership, clock, names } = rig();
    membership.become(member('a'), member('c'));
    clock.advance(599_000);
    expect(names()).toEqual(['a', 'c']);
    clock.advance(1_000);
    membership.tick();
    expect(names()).toEqual([]);
  });

  it('come in turn, or with the most free slots first where they differ', () => {
    const { membership, nodes } = rig();
    expect(Array.from({ length: 6 }, () => nodes.inTurn()[0])).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
    expect(new Set(Array.from({ length: 3 }, () => nodes.mostFreeFirst()[0])).size).toBe(3);
    const free = (nodeId: string, slots: number): Member => member(nodeId, { free_slots: slots });
    membership.become(free('a', 1), free('b', 3), free('c', 2));
    expect(nodes.mostFreeFirst()).toEqual(['b', 'c', 'a']);
  });

  it('are those that take calls, for dispatch: running it is not enough', () => {
    const dispatching = (nodeId: string, change: Partial<NodeBeat> = {}): Member =>
      member(nodeId, { services: ['dispatch'], epoch: 1, ...change });
    const membership = new FakeMembership();
    membership.become(dispatching('a'), member('b'), dispatching('c', { epoch: 0 }), dispatching('f'));
    const nodes = new ServiceNodes({ membership, serves: isDispatching });
    expect(nodes.inTurn().toSorted()).toEqual(['a', 'f']);
    // One that ended its dispatch before it went is not missed.
    membership.become(dispatching('a'), dispatching('f', { epoch: 0, draining: true }));
    membership.become(dispatching('a'));
    expect(nodes.isImpaired).toBe(false);
  });

  it('include one again that came back', () => {
    const { membership, names } = rig();
    membership.become(member('a'), member('c'));
    membership.become(member('a'), member('b'), member('c'));
    expect(names()).toEqual([]);
  });

  it('do not miss one that said that it leaves', () => {
    const { membership, names } = rig();
    membership.become(member('a'), member('b', { draining: true }), member('c'));
    membership.become(member('a'), member('c'));
    expect(names()).toEqual([]);
  });

  it('are addressed by name for a while after the queue group lost a request', () => {
    const { membership, clock, nodes, names } = rig();
    nodes.noteLoss();
    expect(names()).toEqual(['a', 'b', 'c']);
    membership.become(member('a'), member('b'));
    membership.become(member('a'), member('b'), member('c'));
    clock.advance(599_000);
    expect(names()).toEqual(['a', 'b', 'c']);
    clock.advance(1_000);
    membership.tick();
    expect(names()).toEqual([]);
  });

  it('are followed until the end', () => {
    const { membership, nodes, names } = rig();
    nodes.close();
    membership.become(member('a'), member('c'));
    expect(names()).toEqual([]);
    expect(membership.listeners).toBe(0);
  });
});
