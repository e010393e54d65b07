import type { Server } from 'node:http';
import { HTTP_SETTINGS, listen } from '../listen.js';
import type { Listening } from '../listen.js';
import { buildFrontApp } from './front-app.js';
import type { HttpFrontOptions, HttpPatience } from './front-options.js';
import { createHttpServer } from './http-server.js';

const PATIENCE: HttpPatience = { headersMs: 10_000, requestMs: 30_000, stalledReplyMs: 30_000 };
/** How often a draining front closes connections that became idle. */
const IDLE_SWEEP_MS = 50;

/** The HTTP front while it listens. */
export interface HttpFront {
  readonly port: number;
  /** Base URL of each address, such as `http://127.0.0.1:9090`. */
  readonly urls: readonly string[];
  /**
   * Turns not ready, takes no new connections, lets what is in flight finish for at most `withinMs`, and destroys what
   * is left. Idempotent.
   */
  drain(withinMs: number): Promise<void>;
}

/**
 * Starts the HTTP front: registry, cards, A2A calls, health and status.
 * @throws PatchbayError invalid_argument when it cannot listen; the message names the setting
 */
export async function startHttpFront(options: HttpFrontOptions): Promise<HttpFront> {
  const { settings, directory, metrics, readiness } = options;
  const patience = { ...PATIENCE, ...options.patience };
  let listening: Listening | undefined;
  const app = await buildFrontApp(
    options,
    patience,
    () => listening?.urls[0] ?? `http://localhost:${settings.httpPort}`,
  );
  listening = await listen(() => createHttpServer(app.handle, patience), {
    host: settings.httpHost,
    port: settings.httpPort,
    settings: HTTP_SETTINGS,
  });
  const { servers, port, urls } = listening;
  const stopWatching = directory.onChange((change) => {
    if (change.kind === 'removed') metrics.forgetAgent(change.agent.record.agentId);
  });

  let draining: Promise<void> | undefined;
  const drain = async (withinMs: number): Promise<void> => {
    readiness.startDraining();
    await closeServers(servers, withinMs);
    stopWatching();
    await app.close();
  };
  return { port, urls, drain: (withinMs) => (draining ??= drain(withinMs)) };
}

/** Closes servers: idle connections now and as they become idle, the others at the deadline. */
async function closeServers(servers: readonly Server[], withinMs: number): Promise<void> {
  const sweep = setInterval(() => {
    for (const server of servers) server.closeIdleConnections();
  }, IDLE_SWEEP_MS);
  const deadline = setTimeout(() => {
    for (const server of servers) server.closeAllConnections();
  }, withinMs);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  clearInterval(sweep);
  clearTimeout(deadline);
}
