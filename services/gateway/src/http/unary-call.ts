import { BusHeader } from '@patchbay/bus';
import type { Bus, Headers, Message } from '@patchbay/bus';
import type { CallRouter } from './call-router.js';

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
  readonly #router: CallRouter;

  constructor(options: { readonly bus: Bus; readonly router: CallRouter }) {
    this.#bus = options.bus;
    this.#router = options.router;
  }

  /** @throws PatchbayError as `Bus.request` and {@link CallRouter} do */
  call(call: OutboundCall): Promise<Message> {
    const { body, signal } = call;
    return this.#router.run(call, (subject, headers, timeoutMs) =>
      this.#bus.request(subject, body, { timeoutMs, headers, signal }),
    );
  }
}

/** What agents of A2A 0.3 name their extensions by. */
const LEGACY_EXTENSIONS = 'X-A2A-Extensions';
const LEGACY_EXTENSIONS_ON_BUS = BusHeader.forwardPrefix + LEGACY_EXTENSIONS;

/** The agent's protocol headers that go back to the caller, as names and values in turn. */
export function relayedHeaders(headers: Headers): string[] {
  const relayed: string[] = [];
  for (const name of [BusHeader.a2aExtensions, BusHeader.a2aVersion]) {
    const value = headers[name];
    if (value !== undefined) relayed.push(name, value);
  }
  const legacy = headers[LEGACY_EXTENSIONS_ON_BUS];
  if (legacy !== undefined) relayed.push(LEGACY_EXTENSIONS, legacy);
  return relayed;
}
