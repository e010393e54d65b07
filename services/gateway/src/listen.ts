import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PatchbayError } from '@patchbay/core';

/** Names of the settings behind the main port. */
export const HTTP_SETTINGS = { host: 'PATCHBAY_HTTP_HOST', port: 'PATCHBAY_HTTP_PORT' };
/** Names of the settings behind the port of metrics and health. */
export const METRICS_SETTINGS = { host: 'PATCHBAY_HTTP_HOST', port: 'PATCHBAY_METRICS_PORT' };

/** Where a front listens. */
export interface ListenOptions {
  /** `loopback` (127.0.0.1 and ::1), or an address or host name as it is. */
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Names of the settings behind host and port, for error messages. */
  readonly settings: { readonly host: string; readonly port: string };
}

/** Servers that listen, all on one port. */
export interface Listening {
  readonly servers: readonly Server[];
  readonly port: number;
  /** Base URL of each, such as `http://127.0.0.1:9090`. */
  readonly urls: readonly string[];
}

/** Bursts of new connections wait here; the system lowers it to its own limit (net.core.somaxconn). */
const BACKLOG = 1024;
const LOOPBACK = ['127.0.0.1', '::1'];
/** A free port of one loopback address may be taken on the other. */
const FREE_PORT_ATTEMPTS = 10;

/**
 * Listens on each address of `host`, on the same port. A machine without IPv6 is no error for `loopback`.
 * @throws PatchbayError invalid_argument that names the setting, when the port is taken or the address is not ours.
 */
export async function listen(createServer: () => Server, options: ListenOptions): Promise<Listening> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await listenOnce(createServer, options);
    } catch (error) {
      const mayRetry = options.port === 0 && attempt < FREE_PORT_ATTEMPTS && codeOf(error) === 'EADDRINUSE';
      if (!mayRetry) throw explain(error, options);
    }
  }
}

/**
 * Tries whether `listen` would succeed, so that a start can be refused before anything else is made.
 * @throws PatchbayError as `listen` does
 */
export async function assertCanListen(options: ListenOptions): Promise<void> {
  const { servers } = await listen(() => createServer(), options);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
}

async function listenOnce(createServer: () => Server, options: ListenOptions): Promise<Listening> {
  const isLoopback = options.host === 'loopback' || options.host === 'localhost';
  const servers: Server[] = [];
  let { port } = options;
  try {
    for (const host of isLoopback ? LOOPBACK : [options.host]) {
      const server = createServer();
      try {
        await open(server, host, port);
      } catch (error) {
        if (isLoopback && servers.length > 0 && isWithoutIpv6(error)) continue;
        throw error;
      }
      servers.push(server);
      port = addressOf(server).port;
    }
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }
  return { servers, port, urls: servers.map(urlOf) };
}

function open(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function addressOf(server: Server): AddressInfo {
  return server.address() as AddressInfo; // a TCP server that listens has one
}

function urlOf(server: Server): string {
  const { address, port } = addressOf(server);
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function isWithoutIpv6(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT' || code === 'EINVAL';
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function explain(cause: unknown, { host, port, settings }: ListenOptions): PatchbayError {
  const code = codeOf(cause);
  const message =
    code === 'EADDRINUSE'
      ? `port ${port} is already in use; stop the program that uses it, or choose another port with ${settings.port}`
      : code === 'EACCES'
        ? `no permission to listen on port ${port}; choose another one with ${settings.port}`
        : `cannot listen on "${host}" port ${port} (${String(code ?? cause)}); check ${settings.host}`;
  return new PatchbayError('invalid_argument', message, { cause, details: { code, host, port } });
}
