import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { PatchbayError } from '@patchbay/core';
import type { NodeMetrics } from '@patchbay/telemetry';
import { listen, METRICS_SETTINGS } from './listen.js';
import type { Listening } from './listen.js';
import type { Readiness } from './readiness.js';

/** What the metrics server is built from. */
export interface MetricsServerOptions {
  readonly host: string;
  readonly port: number;
  /** Whether somebody chose the port. If not, a free one is taken when it is in use. */
  readonly isPortSet: boolean;
  readonly metrics: NodeMetrics;
  readonly readiness: Readiness;
}

/** The metrics server while it listens. */
export interface MetricsServer {
  readonly port: number;
  readonly urls: readonly string[];
  /** The port was in use, so this is another one: say so. */
  readonly isFallbackPort: boolean;
  /** Ends it at once; scrapes are short. Idempotent. */
  close(): Promise<void>;
}

const TEXT_FORMAT = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Serves `/metrics`, `/healthz` and `/readyz` on a port of their own, so that they need not be open to clients.
 * @throws PatchbayError invalid_argument when it cannot listen
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { listening, isFallbackPort } = await open(options);
  return {
    port: listening.port,
    urls: listening.urls,
    isFallbackPort,
    close: async () => {
      await Promise.all(listening.servers.map(close));
    },
  };
}

async function open(options: MetricsServerOptions): Promise<{ listening: Listening; isFallbackPort: boolean }> {
  const settings = METRICS_SETTINGS;
  const create = (): Server =>
    createServer({ headersTimeout: 10_000, requestTimeout: 10_000 }, (request, response) => {
      void answer(request, response, options);
    });
  try {
    const { host, port } = options;
    return { listening: await listen(create, { host, port, settings }), isFallbackPort: false };
  } catch (error) {
    const isTaken = error instanceof PatchbayError && error.details['code'] === 'EADDRINUSE';
    if (options.isPortSet || !isTaken) throw error;
    return { listening: await listen(create, { host: options.host, port: 0, settings }), isFallbackPort: true };
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: MetricsServerOptions,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    send(response, 405, { error: 'use GET' }, { Allow: 'GET, HEAD' });
    return;
  }
  const path = (request.url ?? '').split('?', 1)[0];
  if (path === '/metrics') {
    try {
      const text = await options.metrics.render();
      response.writeHead(200, { 'Content-Type': TEXT_FORMAT, 'Cache-Control': 'no-store' }).end(text);
    } catch {
      send(response, 500, { error: 'internal error' });
    }
  } else if (path === '/healthz') {
    send(response, 200, { status: 'ok' });
  } else if (path === '/readyz') {
    const report = options.readiness.report();
    send(response, report.ready ? 200 : 503, report);
  } else {
    send(response, 404, { error: 'use /metrics, /healthz or /readyz' });
  }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
