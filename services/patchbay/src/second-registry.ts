import type { Membership } from '@patchbay/directory';

/** Services that keep what they know in a database. */
const WRITERS = new Set(['registry', 'liveness']);

/**
 * Watches, in a node with an embedded database, for another node on the same NATS that has a registry: those would be
 * two truths that overwrite each other in every directory. The later of the two has to end.
 * @returns the way to stop that
 */
export function watchForSecondRegistry(
  membership: Pick<Membership, 'members' | 'onBeat'>,
  onFatal: ((message: string) => void) | undefined,
): () => void {
  let isTold = false;
  return membership.onBeat((beat) => {
    const own = membership.members()[0]?.beat.incarnation ?? '';
    if (isTold || own < beat.incarnation || !beat.services.some((service) => WRITERS.has(service))) return;
    isTold = true;
    onFatal?.(
      `node ${beat.node_id} on this NATS has a registry already, and the embedded database cannot be shared; set PATCHBAY_DATABASE_URL to one Postgres for all nodes`,
    );
  });
}
