import type { RegisteredAgent } from '@patchbay/agent-card';
import { MemoryBus, Subjects } from '@patchbay/bus';
import type { Delivery, Exchange, Subscription } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { ByteBudget } from '@patchbay/core';
import { Directory } from '@patchbay/directory';
import { Readiness, startHttpFront } from '@patchbay/gateway';
import type { HttpFront, HttpFrontSettings, HttpPatience, ReadinessCondition } from '@patchbay/gateway';
import { LivenessClient, RegistryClient, serveLiveness, serveRegistry } from '@patchbay/service-api';
import type { LivenessHandlers, RegistryHandlers } from '@patchbay/service-api';
import { NodeMetrics, silentLogger } from '@patchbay/telemetry';

/** What differs from an ordinary front. */
export interface RunningFrontOptions {
  readonly settings?: Partial<HttpFrontSettings>;
  readonly patience?: Partial<HttpPatience>;
  readonly budget?: ByteBudget;
  readonly conditions?: () => readonly ReadinessCondition[];
  readonly registry?: Partial<RegistryHandlers>;
  readonly liveness?: Partial<LivenessHandlers>;
}

const SETTINGS: HttpFrontSettings = {
  httpHost: 'loopback',
  httpPort: 0,
  publicUrl: null,
  trustProxy: [],
  name: 'patchbay',
  version: '0.1.0',
  nodeId: 'test-node',
  a2aEnabled: true,
  maxRequestBytes: 10_485_760,
  maxCardBytes: 262_144,
  defaultTimeoutSeconds: 5,
  maxTimeoutSeconds: 3600,
  streamIdleSeconds: 900,
  keepaliveSeconds: 30,
};

type Parts = Pick<RunningFront, 'bus' | 'subjects' | 'directory' | 'metrics' | 'readiness' | 'front'>;

/** A real HTTP front on a real in-process bus, with the services behind it played by the test. */
export class RunningFront implements AsyncDisposable {
  readonly bus: MemoryBus;
  readonly subjects: Subjects;
  readonly directory: Directory;
  readonly metrics: NodeMetrics;
  readonly readiness: Readiness;
  readonly front: HttpFront;
  /** Base URL. */
  readonly url: string;
  #nextRevision = 1;

  private constructor(parts: Parts) {
    this.bus = parts.bus;
    this.subjects = parts.subjects;
    this.directory = parts.directory;
    this.metrics = parts.metrics;
    this.readiness = parts.readiness;
    this.front = parts.front;
    this.url = `http://localhost:${parts.front.port}`;
  }

  static async start(options: RunningFrontOptions = {}): Promise<RunningFront> {
    const bus = new MemoryBus();
    const subjects = new Subjects();
    const directory = new Directory();
    const metrics = new NodeMetrics({ prefix: 'patchbay' });
    const readiness = new Readiness(options.conditions);
    serveRegistry(bus, subjects, { ...absentRegistry(), ...options.registry });
    serveLiveness(bus, subjects, { heartbeat: () => Promise.reject(notFound()), ...options.liveness });
    const front = await startHttpFront({
      bus,
      subjects,
      directory,
      metrics,
      readiness,
      registry: new RegistryClient(bus, subjects),
      liveness: new LivenessClient(bus, subjects),
      logger: silentLogger(),
      settings: { ...SETTINGS, ...options.settings },
      ...(options.budget === undefined ? {} : { budget: options.budget }),
      ...(options.patience === undefined ? {} : { patience: options.patience }),
    });
    return new RunningFront({ bus, subjects, directory, metrics, readiness, front });
  }

  /** Puts an agent into the directory. */
  know(agentId: string, card: Partial<RegisteredAgent['record']> = {}): RegisteredAgent {
    const agent = registeredAgent(agentId, this.#nextRevision, card);
    this.directory.apply({
      v: 1,
      revision: this.#nextRevision++,
      kind: 'registered',
      agentId,
      agent,
      atMs: agent.registeredAtMs,
      nodeId: 'test-node',
    });
    return agent;
  }

  /** Takes an agent out of the directory. */
  forget(agentId: string): void {
    this.directory.apply({
      v: 1,
      revision: this.#nextRevision++,
      kind: 'deregistered',
      agentId,
      agent: null,
      atMs: 0,
      nodeId: 'test-node',
    });
  }

  /** Registers an agent whose dispatch is `handler`. */
  serve(agentId: string, handler: (exchange: Exchange, delivery: Delivery) => void | Promise<void>): Subscription {
    this.know(agentId);
    return this.bus.subscribe(
      this.subjects.agent(agentId),
      (delivery) => (delivery.exchange === undefined ? undefined : handler(delivery.exchange, delivery)),
      { queue: 'dispatch' },
    );
  }

  /** Sends a JSON-RPC call as a client does. */
  call(agentId: string, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}/a2a/${agentId}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.front.drain(0);
    await this.bus.close();
    await this.metrics.shutdown();
  }
}

/** An agent as the registry knows it. */
export function registeredAgent(
  agentId: string,
  revision: number,
  card: Partial<RegisteredAgent['record']> = {},
): RegisteredAgent {
  const url = 'http://agent.example:8000/';
  return {
    record: {
      agentId,
      dialect: 'kubemq',
      name: agentId,
      description: '',
      version: '',
      url,
      skills: [],
      defaultInputModes: ['text'],
      defaultOutputModes: ['text'],
      protocolVersions: ['1.0'],
      interfaces: [{ url, binding: 'JSONRPC', protocolVersion: '0.3' }],
      extra: {},
      ...card,
    },
    ordinal: revision,
    revision,
    registeredAtMs: Date.UTC(2026, 0, 1, 0, 0, revision),
    lastSeenMs: Date.UTC(2026, 0, 1, 0, 0, revision),
  };
}

/** A JSON-RPC request. */
export function rpc(method: string, id: unknown = 1, params: unknown = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

function absentRegistry(): RegistryHandlers {
  return {
    register: () => Promise.reject(new PatchbayError('internal', 'no register in this test')),
    deregister: () => Promise.reject(notFound()),
    lookup: () => Promise.resolve(null),
    changes: () => {
      throw new PatchbayError('internal', 'no changes in this test');
    },
  };
}

function notFound(): PatchbayError {
  return new PatchbayError('agent_not_found', 'agent not found');
}
