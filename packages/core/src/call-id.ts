import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';

// One system call for 1,024 random numbers instead of one for each: ids are made on the hot path.
const pool = new Uint32Array(1024);
let next = pool.length;

/** A random number in [0, 1), from the system's secure source, drawn from a pool. */
function pooledRandom(): number {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  return (pool[next++] ?? 0) / 0x1_0000_0000;
}

const ulid = monotonicFactory(pooledRandom);

/** A new call id: a ULID, so ids sort by time within a node. */
export function newCallId(): string {
  return ulid();
}
