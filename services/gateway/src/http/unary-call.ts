import { BusHeader } from '@patchbay/bus';
import type { Bus, Headers, Message, Subjects } from '@patchbay/bus';
import type { DispatcherRetry } from './dispatcher-retry.js';

/** One call as it goes to dispatch. */
export interface OutboundCall {
  readonly agentId: string;
  /** The caller's JSON-RPC request, byte for byte. */
  readonly body: Uint8Array;
  readonly headers: Headers;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Asks an agent for one answer. Hot path. */
export class UnaryCaller {
  readonly #bus: Bus;
  readonly #subjects: Subjects;
  readonly #retry: DispatcherRetry;

  constructor(options: { readonly bus: Bus; readonly subjects: Subjects; readonly retry: DispatcherRetry }) {
    this.#bus = options.bus;
    this.#subjects = options.subjects;
    this.#retry = options.retry;
  }

  /** @throws PatchbayError as `Bus.request` and {@link DispatcherRetry} do */
  call(call: OutboundCall): Promise<Message> {
    const { body, headers, signal } = call;
    const subject = this.#subjects.agent(call.agentId);
    return this.#retry.run(call.agentId, call.timeoutMs, signal, (timeoutMs) =>
      this.#bus.request(subject, body, { timeoutMs, headers, signal }),
    );
  }
}

/** The agent's protocol headers that go back to the caller, as names and values in turn. */
export function relayedHeaders(headers: Headers): string[] {
  const relayed: string[] = [];
  for (const name of [BusHeader.a2aExtensions, BusHeader.a2aVersion]) {
    const value = headers[name];
    if (value !== undefined) relayed.push(name, value);
  }
  return relayed;
}
