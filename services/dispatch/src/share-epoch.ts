import { createHash } from 'node:crypto';
import type { NodeBeat } from '@patchbay/directory';

/** Slots of the member at `index` among `members` of them; together they have `limit`. */
export function shareAt(limit: number, index: number, members: number): number {
  return Math.floor(limit / members) + (index < limit % members ? 1 : 0);
}

/** Names a set of members: equal for two nodes that see the same runs of the same nodes, and never 0. */
export function epochOf(sorted: readonly NodeBeat[]): number {
  const names = sorted.map((beat) => [beat.node_id, beat.incarnation, beat.rejoins ?? 0]);
  // 48 bits: exact as a number, and in JSON.
  return createHash('sha256').update(JSON.stringify(names)).digest().readUIntBE(0, 6) || 1;
}

/** Members in the order of their ids, the same on every node. */
export function sortMembers(beats: readonly NodeBeat[]): NodeBeat[] {
  return beats.toSorted((a, b) => (a.node_id < b.node_id ? -1 : 1));
}
