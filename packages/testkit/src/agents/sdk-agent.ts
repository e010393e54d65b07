import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Settings of {@link startSdkAgent}. */
export interface SdkAgentOptions {
  /** Default: a free port. */
  readonly port?: number;
  /** Silence before each event of a task, milliseconds. Default 0. */
  readonly stepMs?: number;
}

/** One exchange with an SDK agent, in the bytes that went over the wire. */
export interface SdkExchange {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly requestBody: Buffer;
  /** All of the response's body so far. */
  readonly responseBody: Buffer;
}

/**
 * An agent built with the official SDK (`@a2a-js/sdk`): a real server that answers over JSON-RPC. A message whose text
 * is `direct` is answered by a message; every other becomes a task: submitted, working, two artifact chunks, completed.
 */
export interface SdkAgent extends AsyncDisposable {
  /** Where JSON-RPC is spoken. */
  readonly url: string;
  /** Base of the well-known card; ends with a slash. */
  readonly baseUrl: string;
  readonly exchanges: readonly SdkExchange[];
}

/** What the code for one version of the SDK provides: an HTTP application that knows its own address. */
export type SdkAppFactory = (jsonRpcUrl: string, stepMs: number) => RequestListener;

const JSON_RPC_PATH = 'a2a/jsonrpc';

/** Starts an agent of the SDK that speaks `version`: 0.3.14 or 1.3.0 of the npm package. */
export async function startSdkAgent(version: '0.3' | '1.0', options: SdkAgentOptions = {}): Promise<SdkAgent> {
  // Loaded when asked for: tests that need no SDK do not wait for it.
  const createApp = version === '0.3' ? (await import('./sdk-app-0.3.js')).createApp03 : await load10();
  const exchanges: RecordedExchange[] = [];
  const listeners: RequestListener[] = [];
  const server = createServer((request, response) => {
    exchanges.push(new RecordedExchange(request, response));
    for (const listener of listeners) listener(request, response);
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://localhost:${(server.address() as AddressInfo).port}/`;
  const url = baseUrl + JSON_RPC_PATH;
  listeners.push(createApp(url, options.stepMs ?? 0));
  return {
    url,
    baseUrl,
    exchanges,
    async [Symbol.asyncDispose]() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function load10(): Promise<SdkAppFactory> {
  return (await import('./sdk-app-1.0.js')).createApp10;
}

/** Listens in on one request and its response. */
class RecordedExchange implements SdkExchange {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly #received: Buffer[] = [];
  readonly #sent: Buffer[] = [];

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.method = request.method ?? '';
    this.url = request.url ?? '';
    this.headers = request.headers;
    // The application attaches its own listener within this turn, before the first chunk is emitted.
    request.on('data', (chunk: Buffer) => this.#received.push(chunk));
    const write = response.write.bind(response);
    const end = response.end.bind(response);
    response.write = (...args: unknown[]) => {
      this.#note(args[0]);
      return Reflect.apply(write, response, args) as boolean;
    };
    response.end = (...args: unknown[]) => {
      this.#note(args[0]);
      return Reflect.apply(end, response, args) as ServerResponse;
    };
  }

  get requestBody(): Buffer {
    return Buffer.concat(this.#received);
  }

  get responseBody(): Buffer {
    return Buffer.concat(this.#sent);
  }

  #note(chunk: unknown): void {
    if (typeof chunk === 'string') this.#sent.push(Buffer.from(chunk));
    else if (chunk instanceof Uint8Array) this.#sent.push(Buffer.from(chunk));
  }
}
