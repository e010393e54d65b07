import type { RegisteredAgent } from '@patchbay/agent-card';
import { readKubemqCard } from '@patchbay/agent-card';
import { Subjects } from '@patchbay/bus';
import type { Bus, Handler, Headers, Message, RequestOptions, StreamOptions, Subscription } from '@patchbay/bus';
import type { Clock } from '@patchbay/core';
import { Directory, DirectoryReplica, Membership } from '@patchbay/directory';
import { startLiveness } from '@patchbay/liveness';
import type { LivenessService } from '@patchbay/liveness';
import { LivenessClient, publishEvents, RegistryClient, serveRegistry } from '@patchbay/service-api';
import type { ChangesChunk } from '@patchbay/service-api';
import type { LivenessStore, RegistryStore } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';

export const subjects = new Subjects();

/** How {@link startLivenessNode} builds a node. */
export interface LivenessNodeOptions {
  readonly bus: Bus;
  readonly store: LivenessStore;
  readonly nodeId?: string;
  readonly ttlSeconds?: number;
  readonly sweepIntervalSeconds?: number;
  readonly clock?: Clock;
}

/** A node that runs liveness and follows a registry. */
export interface LivenessNode extends AsyncDisposable {
  readonly directory: Directory;
  readonly membership: Membership;
  readonly service: LivenessService;
  readonly client: LivenessClient;
}

function onConflict(): void {
  throw new Error('two nodes with one id');
}

/** Starts a node on a bus and a store that are the caller's, and resolves when its directory is loaded. */
export async function startLivenessNode(options: LivenessNodeOptions): Promise<LivenessNode> {
  const { bus, store, nodeId = 'node-a', ttlSeconds = 300, sweepIntervalSeconds = 60 } = options;
  const logger = silentLogger();
  const directory = new Directory();
  const registry = new RegistryClient(bus, subjects);
  const services = ['liveness'];
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
  const replica = new DirectoryReplica({ bus, subjects, directory, registry, nodeId, logger, membership });
  const service = startLiveness({
    bus,
    subjects,
    store,
    directory,
    replica,
    membership,
    registry,
    nodeId,
    ttlSeconds,
    sweepIntervalSeconds,
    logger,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  membership.start();
  replica.start();
  await replica.ready(10_000);
  return {
    directory,
    membership,
    service,
    client: new LivenessClient(bus, subjects),
    [Symbol.asyncDispose]: async () => {
      await service.drain(1_000);
      await replica.stop();
      await membership.stop();
    },
  };
}

/** As much of a registry as liveness needs: it looks agents up, and gives its state to whoever starts. */
export function serveLookups(bus: Bus, store: RegistryStore): void {
  serveRegistry(bus, subjects, {
    register: () => Promise.reject(new Error('not served here')),
    deregister: () => Promise.reject(new Error('not served here')),
    lookup: (agentId) => store.get(agentId),
    changes: () => readState(store),
  });
}

async function* readState(store: RegistryStore): AsyncIterable<ChangesChunk> {
  const { head, agents } = await store.snapshot();
  yield { kind: 'snapshot', revision: head.revision };
  yield { kind: 'agents', agents };
  yield { kind: 'head', revision: head.revision };
}

/** Stores an agent; the nodes hear of it when `bus` is given. */
export async function registerAgent(store: RegistryStore, agentId: string, bus?: Bus): Promise<RegisteredAgent> {
  const cardRaw = Buffer.from(JSON.stringify({ agent_id: agentId, name: agentId, url: 'http://localhost:9/' }));
  const record = readKubemqCard(cardRaw, { maxBytes: 1_000 });
  const [outcome] = await store.write([{ kind: 'register', record, cardRaw }], { nodeId: 'test', maxAgents: 0 });
  if (outcome?.kind !== 'written' || outcome.event.agent === null) throw new Error('the agent was not stored');
  if (bus !== undefined) {
    publishEvents(bus, subjects, [outcome.event]);
    await bus.flush();
  }
  return outcome.event.agent;
}

/** A bus whose link to the other nodes goes down when a test says so; what stays in the process goes on. */
export class BreakableBus implements Bus {
  readonly #bus: Bus;
  readonly #listeners = new Set<(isUp: boolean) => void>();
  #isUp = true;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  set(isUp: boolean): void {
    this.#isUp = isUp;
    for (const listener of this.#listeners) listener(isUp);
  }

  onStatus(listener: (isUp: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  publish(subject: string, body: Uint8Array, headers?: Headers): void {
    this.#bus.publish(subject, body, headers);
  }

  subscribe(subject: string, handler: Handler, options?: { queue?: string }): Subscription {
    return this.#bus.subscribe(subject, handler, options);
  }

  request(subject: string, body: Uint8Array, options: RequestOptions): Promise<Message> {
    return this.#bus.request(subject, body, options);
  }

  stream(subject: string, body: Uint8Array, options: StreamOptions): AsyncIterable<Message> {
    return this.#bus.stream(subject, body, options);
  }

  flush(): Promise<void> {
    return this.#bus.flush();
  }

  close(): Promise<void> {
    return this.#bus.close();
  }
}
