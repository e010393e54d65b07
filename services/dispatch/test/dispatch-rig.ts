import type { AgentRecord } from '@patchbay/agent-card';
import { BusHeader, MemoryBus, RemoteError, Subjects } from '@patchbay/bus';
import type { Headers, Message } from '@patchbay/bus';
import { Directory } from '@patchbay/directory';
import { startDispatch } from '@patchbay/dispatch';
import type { DispatchOptions, DispatchService } from '@patchbay/dispatch';
import { silentLogger } from '@patchbay/telemetry';
import { startScriptedAgent } from '@patchbay/testkit';
import type { AgentScript, ScriptedAgent } from '@patchbay/testkit';

/** A call as a front makes it. */
export interface RigCall {
  readonly timeoutMs?: number;
  readonly headers?: Headers;
  readonly signal?: AbortSignal;
  readonly windowBytes?: number;
}

/** How a call ended that did not end well. */
export interface RigError {
  readonly code: string;
  readonly message: string;
  /** The error as the caller's protocol words it; undefined when the responder left that to the caller. */
  readonly body: { id: unknown; error: { code: number; message: string; data?: unknown[] } } | undefined;
}

/** What differs from an ordinary dispatch. */
export type RigOptions = Partial<DispatchOptions> & { readonly memoryBus?: MemoryBus };

/** A dispatch on a memory bus, with a directory that the test fills. */
export class DispatchRig implements AsyncDisposable {
  readonly bus: MemoryBus;
  readonly subjects = new Subjects();
  readonly directory = new Directory();
  readonly dispatch: DispatchService;

  constructor(options: RigOptions = {}) {
    this.bus = options.memoryBus ?? new MemoryBus();
    this.dispatch = startDispatch({
      bus: this.bus,
      subjects: this.subjects,
      directory: this.directory,
      nodeId: 'node-1',
      logger: silentLogger(),
      ...options,
    });
  }

  register(agentId: string, url: string): void {
    const revision = this.directory.revision + 1;
    const ordinal = this.directory.get(agentId)?.ordinal ?? revision;
    const agent = { record: recordOf(agentId, url), ordinal, revision, registeredAtMs: 0, lastSeenMs: 0 };
    const applied = this.directory.apply({
      v: 1,
      revision,
      kind: 'registered',
      agentId,
      agent,
      atMs: 0,
      nodeId: 'node-1',
    });
    if (!applied) throw new Error(`revision ${revision} was not applied`);
  }

  deregister(agentId: string): void {
    const revision = this.directory.revision + 1;
    this.directory.apply({ v: 1, revision, kind: 'deregistered', agentId, agent: null, atMs: 0, nodeId: 'node-1' });
  }

  call(agentId: string, body: string | Uint8Array, options: RigCall = {}): Promise<Message> {
    return this.bus.request(this.subjects.agent(agentId), bytesOf(body), { timeoutMs: 5_000, ...options });
  }

  /** The error that a call ends with. */
  async refusal(agentId: string, body: string | Uint8Array, options: RigCall = {}): Promise<RigError> {
    return errorOf(this.call(agentId, body, options));
  }

  stream(agentId: string, body: string | Uint8Array, options: RigCall = {}): AsyncIterable<Message> {
    return this.bus.stream(this.subjects.agent(agentId), bytesOf(body), { timeoutMs: 5_000, ...options });
  }

  /** Reads a stream to its end, good or bad. */
  async readAll(agentId: string, body: string, options: RigCall = {}): Promise<{ parts: Part[]; error?: RigError }> {
    const parts: Part[] = [];
    const reading = (async () => {
      for await (const message of this.stream(agentId, body, options)) parts.push(partOf(message));
    })();
    const error = await reading.then(
      () => undefined,
      (thrown: unknown) => describe(thrown),
    );
    return error === undefined ? { parts } : { parts, error };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispatch.drain(0);
    await this.bus.close();
  }
}

/** A rig with one agent, registered as `agentId`. */
export interface RigWithAgent extends AsyncDisposable {
  readonly rig: DispatchRig;
  readonly agent: ScriptedAgent;
}

/** Starts a scripted agent and a rig that knows it. */
export async function rigWithAgent(
  agentId: string,
  script: AgentScript,
  options: RigOptions = {},
): Promise<RigWithAgent> {
  const agent = await startScriptedAgent(script);
  const rig = new DispatchRig(options);
  rig.register(agentId, agent.url);
  return {
    rig,
    agent,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      await agent[Symbol.asyncDispose]();
    },
  };
}

/** One part of a stream, in short. */
export interface Part {
  readonly name?: string;
  readonly id?: string;
  readonly content?: string;
  readonly data: string;
}

export function partOf({ body, headers }: Message): Part {
  const name = headers[BusHeader.eventName];
  const id = headers[BusHeader.eventId];
  const content = headers[BusHeader.content];
  return {
    ...(name === undefined ? {} : { name }),
    ...(id === undefined ? {} : { id }),
    ...(content === undefined ? {} : { content }),
    data: Buffer.from(body).toString(),
  };
}

/** The error that `call` ends with; fails when it ends well. */
export async function errorOf(call: Promise<unknown>): Promise<RigError> {
  try {
    await call;
  } catch (error) {
    return describe(error);
  }
  throw new Error('the call was answered');
}

function describe(error: unknown): RigError {
  if (!(error instanceof Error) || !('code' in error)) throw error;
  const body =
    error instanceof RemoteError ? (JSON.parse(Buffer.from(error.body).toString()) as RigError['body']) : undefined;
  return { code: String(error.code), message: error.message, body };
}

export function request(method: string, params: unknown = {}, id: unknown = 1): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

function recordOf(agentId: string, url: string): AgentRecord {
  return {
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
    interfaces: [{ url, binding: 'JSONRPC', protocolVersion: '1.0' }],
    extra: {},
  };
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}
