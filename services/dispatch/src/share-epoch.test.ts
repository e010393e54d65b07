import type { NodeBeat } from '@patchbay/directory';
import { describe, expect, it } from 'vitest';
import { epochOf, shareAt, sortMembers } from './share-epoch.js';

function beat(nodeId: string, change: Partial<NodeBeat> = {}): NodeBeat {
  return {
    v: 1,
    node_id: nodeId,
    incarnation: '01A',
    version: '0.1.0',
    services: ['dispatch'],
    applied_revision: 0,
    epoch: 1,
    draining: false,
    free_slots: 0,
    bus: true,
    store: true,
    ...change,
  };
}

describe('shareAt', () => {
  it.each([
    [10, [4, 3, 3]],
    [100, [34, 33, 33]],
    [9, [3, 3, 3]],
    [2, [1, 1, 0]],
  ])('gives out a limit of %d whole', (limit, shares) => {
    expect(shares.map((_, index) => shareAt(limit, index, shares.length))).toEqual(shares);
  });
});

describe('epochOf', () => {
  it('is the same for the same runs of the same nodes, whatever else they say', () => {
    const one = epochOf(sortMembers([beat('a'), beat('b')]));
    const other = epochOf(sortMembers([beat('b', { epoch: 3, free_slots: 7, draining: true }), beat('a')]));
    expect(other).toBe(one);
    expect(Number.isSafeInteger(one) && one > 0).toBe(true);
  });

  it('differs for other nodes, another run and a node that gave up its share', () => {
    const sets = [
      [beat('a'), beat('b')],
      [beat('a')],
      [beat('a'), beat('c')],
      [beat('a'), beat('b', { incarnation: '01B' })],
      [beat('a'), beat('b', { rejoins: 1 })],
    ];
    expect(new Set(sets.map(epochOf)).size).toBe(sets.length);
  });
});
