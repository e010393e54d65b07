import type { Bus } from '@patchbay/bus';
import { Subjects } from '@patchbay/bus';
import { Directory, DirectoryReplica, Membership } from '@patchbay/directory';
import { startRegistry } from '@patchbay/registry';
import { RegistryClient } from '@patchbay/service-api';
import type { RegistryStore } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';

/** How {@link startRegistryNode} builds a node. */
export interface RegistryNodeOptions {
  readonly bus: Bus;
  readonly store: RegistryStore;
  readonly nodeId?: string;
  readonly maxAgents?: number;
  readonly maxCardBytes?: number;
}

/** A node that runs the registry and follows it. */
export interface RegistryNode extends AsyncDisposable {
  readonly directory: Directory;
  readonly replica: DirectoryReplica;
  readonly membership: Membership;
  readonly client: RegistryClient;
  /** Ids in the order of the directory's list. */
  listed(): string[];
}

export const subjects = new Subjects();

function onConflict(): void {
  throw new Error('two nodes with one id');
}

/** Starts a node on a bus and a store that are the caller's, and resolves when its directory is loaded. */
export async function startRegistryNode(options: RegistryNodeOptions): Promise<RegistryNode> {
  const { bus, store, nodeId = 'node-a', maxAgents = 0, maxCardBytes = 262_144 } = options;
  const logger = silentLogger();
  const directory = new Directory();
  const client = new RegistryClient(bus, subjects);
  const services = ['registry'];
  const membership = new Membership({
    bus,
    subjects,
    directory,
    nodeId,
    version: '0',
    services,
    logger,
    onConflict,
  });
  const replica = new DirectoryReplica({ bus, subjects, directory, registry: client, nodeId, logger, membership });
  const registry = startRegistry({
    bus,
    subjects,
    store,
    directory,
    replica,
    membership,
    nodeId,
    maxAgents,
    maxCardBytes,
    logger,
  });
  membership.start();
  replica.start();
  await replica.ready(10_000);
  return {
    directory,
    replica,
    membership,
    client,
    listed: () => directory.list().map(({ record }) => record.agentId),
    [Symbol.asyncDispose]: async () => {
      await registry.drain(1_000);
      await replica.stop();
      await membership.stop();
    },
  };
}

/** A card as clients send it. */
export function cardOf(agentId: string, members: Record<string, unknown> = {}): Uint8Array {
  return Buffer.from(JSON.stringify({ agent_id: agentId, name: agentId, url: 'http://localhost:9/', ...members }));
}

/** `store` with some of its methods replaced. */
export function storeWith(store: RegistryStore, methods: Partial<RegistryStore>): RegistryStore {
  return {
    write: (writes, options) => store.write(writes, options),
    head: () => store.head(),
    get: (agentId) => store.get(agentId),
    eventsAfter: (revision, limit) => store.eventsAfter(revision, limit),
    snapshot: () => store.snapshot(),
    prune: (keepRevisions) => store.prune(keepRevisions),
    ...methods,
  };
}
