import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { AgentScript } from './agent-script.js';
import { playScript } from './play-script.js';

/** A request as it reached a scripted agent. */
export interface RecordedRequest {
  readonly method: string;
  /** Path and query as they came. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values as they came, in turn. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** Settings of {@link startScriptedAgent}. */
export interface ScriptedAgentOptions {
  /** Closes sockets that were idle for so many milliseconds, without announcing it. Default: node:http's own way. */
  readonly idleCloseMs?: number;
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string;
  /** Default: a free port. */
  readonly port?: number;
  /** Host name in `url`. Default `localhost`, as agents register themselves. */
  readonly urlHost?: string;
}

/**
 * Starts a real HTTP agent that does what `script` says and records what it gets.
 *
 * @example
 * await using agent = await startScriptedAgent({ kind: 'slow', ms: 200 });
 * await call(agent.url);
 * agent.requests[0].headers;
 */
export async function startScriptedAgent(
  script: AgentScript,
  options: ScriptedAgentOptions = {},
): Promise<ScriptedAgent> {
  const agent = new ScriptedAgent(script, options);
  await agent.listen();
  return agent;
}

/** A running scripted agent. Made by {@link startScriptedAgent}. */
export class ScriptedAgent implements AsyncDisposable {
  /** Every request so far, in order of arrival. */
  readonly requests: RecordedRequest[] = [];
  /** Emits `closed` when a connection closed while its response was not finished. */
  readonly events = new EventEmitter<{ closed: [] }>();
  readonly #options: ScriptedAgentOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #idleTimers = new Map<Socket, NodeJS.Timeout>();
  #script: AgentScript;
  #url = '';
  #inHand = 0;
  #maxInHand = 0;
  #abandoned = 0;

  constructor(script: AgentScript, options: ScriptedAgentOptions) {
    this.#script = script;
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    // No `Keep-Alive: timeout=` is sent when it is 0; the sockets are then closed by us.
    if (options.idleCloseMs !== undefined) this.#server.keepAliveTimeout = 0;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => {
        this.#sockets.delete(socket);
        this.#keepOpen(socket);
      });
    });
  }

  /** Where it is called; ends with a slash. */
  get url(): string {
    return this.#url;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that are open now. */
  get openConnections(): number {
    return this.#sockets.size;
  }

  /** Requests that are being answered now. */
  get inHand(): number {
    return this.#inHand;
  }

  /** The most requests that were ever in hand at once. */
  get maxInHand(): number {
    return this.#maxInHand;
  }

  /** Responses whose connection closed before they were finished. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** From the next request on does something else. */
  play(script: AgentScript): void {
    this.#script = script;
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.port ?? 0, this.#options.host ?? '127.0.0.1');
    await once(this.#server, 'listening');
    this.#url = `http://${this.#options.urlHost ?? 'localhost'}:${this.port}/`;
  }

  /** Resets every open connection, as the end of a process does. */
  resetConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Stops listening and drops every connection. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const ended = new AbortController();
    this.#keepOpen(request.socket);
    this.#inHand += 1;
    this.#maxInHand = Math.max(this.#maxInHand, this.#inHand);
    response.once('close', () => {
      this.#inHand -= 1;
      ended.abort();
      if (response.writableFinished) {
        this.#closeWhenIdle(request.socket);
      } else {
        this.#abandoned += 1;
        this.events.emit('closed');
      }
    });
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const { method = '', url = '', headers, rawHeaders } = request;
      this.requests.push({ method, url, headers, rawHeaders, body });
      await playScript(this.#script, { request, response, body, signal: ended.signal });
    } catch (error) {
      // A reader that left ends a script in its middle; anything else is a fault of the script.
      if (!ended.signal.aborted && !request.destroyed) response.destroy(error as Error);
    }
  }

  #closeWhenIdle(socket: Socket): void {
    const { idleCloseMs } = this.#options;
    if (idleCloseMs === undefined || socket.destroyed) return;
    this.#idleTimers.set(
      socket,
      setTimeout(() => socket.end(), idleCloseMs),
    );
  }

  #keepOpen(socket: Socket): void {
    clearTimeout(this.#idleTimers.get(socket));
    this.#idleTimers.delete(socket);
  }
}
