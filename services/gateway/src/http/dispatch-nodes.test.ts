import { ManualClock } from '@patchbay/core';
import type { Member, NodeBeat } from '@patchbay/directory';
import { describe, expect, it } from 'vitest';
import { DispatchNodes } from './dispatch-nodes.js';

/** What the test says of a node; `?` after the id: suspect. */
type Said = Partial<NodeBeat>;

class FakeMembership {
  readonly nodeId = 'a';
  readonly #changed = new Set<() => void>();
  readonly #ticked = new Set<() => void>();
  #members: Member[] = [];

  set(members: Readonly<Record<string, Said>>): void {
    this.#members = Object.entries(members).map(([name, said]) => memberOf(name, said));
    for (const listener of this.#changed) listener();
  }

  members(): Member[] {
    return this.#members;
  }

  tick(): void {
    for (const listener of this.#ticked) listener();
  }

  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => this.#changed.delete(listener);
  }

  onTick(listener: () => void): () => void {
    this.#ticked.add(listener);
    return () => this.#ticked.delete(listener);
  }

  get listeners(): number {
    return this.#changed.size + this.#ticked.size;
  }
}

function memberOf(name: string, said: Said): Member {
  const beat: NodeBeat = {
    v: 1,
    node_id: name.replace('?', ''),
    incarnation: '01A',
    version: '0.1.0',
    services: ['dispatch'],
    applied_revision: 0,
    epoch: 1,
    draining: false,
    free_slots: 0,
    bus: true,
    store: true,
    ...said,
  };
  return { beat, isSuspect: name.endsWith('?') };
}

function start(members: Readonly<Record<string, Said>>) {
  const membership = new FakeMembership();
  membership.set(members);
  const clock = new ManualClock();
  return { membership, clock, nodes: new DispatchNodes({ membership, clock }) };
}

describe('DispatchNodes', () => {
  it('addresses those that dispatch, answer and stay', () => {
    const { nodes } = start({
      a: {},
      b: { services: ['gateway'] },
      c: { epoch: 0 },
      'd?': {},
      e: { draining: true },
      f: {},
    });
    expect(nodes.inTurn().toSorted()).toEqual(['a', 'f']);
    expect(nodes.mostFreeFirst().toSorted()).toEqual(['a', 'f']);
  });

  it('begins with another one each time, and with the most free slots first where they differ', () => {
    const { nodes, membership } = start({ a: {}, b: {}, c: {} });
    const firsts = Array.from({ length: 6 }, () => nodes.inTurn()[0]);
    expect(firsts).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
    const ties = Array.from({ length: 3 }, () => nodes.mostFreeFirst()[0]);
    expect(new Set(ties).size).toBe(3);
    membership.set({ a: { free_slots: 1 }, b: { free_slots: 3 }, c: { free_slots: 2 } });
    expect(nodes.mostFreeFirst()).toEqual(['b', 'c', 'a']);
  });

  it('is impaired while a node that dispatches is a suspect', () => {
    const { nodes, membership } = start({ a: {}, b: {}, 'c?': { services: ['gateway'] } });
    expect(nodes.isImpaired).toBe(false);
    membership.set({ a: {}, 'b?': {} });
    expect(nodes.isImpaired).toBe(true);
    membership.set({ a: {}, b: {} });
    expect(nodes.isImpaired).toBe(false);
  });

  it('stays impaired when a silent node is gone, until it is heard again or the server has dropped it', () => {
    const { nodes, membership, clock } = start({ a: {}, b: {} });
    membership.set({ a: {} });
    expect(nodes.isImpaired).toBe(true);
    membership.set({ a: {}, b: { epoch: 0 } });
    expect(nodes.isImpaired).toBe(false);
    membership.set({ a: {}, b: {} });
    membership.set({ a: {} });
    clock.advance(599_000);
    membership.tick();
    expect(nodes.isImpaired).toBe(true);
    clock.advance(1_000);
    membership.tick();
    expect(nodes.isImpaired).toBe(false);
  });

  it('is impaired for a while after the queue group lost a call', () => {
    const { nodes, membership, clock } = start({ a: {}, b: {} });
    nodes.noteLoss();
    membership.set({ a: {}, b: {}, c: {} });
    expect(nodes.isImpaired).toBe(true);
    clock.advance(600_000);
    membership.tick();
    expect(nodes.isImpaired).toBe(false);
  });

  it('takes a node that ended its dispatch before it went for gone', () => {
    const { nodes, membership } = start({ a: {}, b: {} });
    membership.set({ a: {}, b: { epoch: 0, draining: true } });
    membership.set({ a: {} });
    expect(nodes.isImpaired).toBe(false);
  });

  it('lets go of the membership', () => {
    const { nodes, membership } = start({ a: {} });
    nodes.close();
    expect(membership.listeners).toBe(0);
  });
});
