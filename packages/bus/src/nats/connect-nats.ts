import { setTimeout as delay } from 'node:timers/promises';
import { connect, ErrorCode, NatsError } from 'nats';
import type { ConnectionOptions, NatsConnection } from 'nats';
import { PatchbayError } from '@patchbay/core';

/** How the connection to NATS is made. */
export interface NatsConnectOptions {
  /**
   * URLs of one server, or of several of a cluster, as a list or joined by commas. Credentials in the first one that
   * has some (`nats://user:password@host:4222`, `nats://token@host:4222`) are used unless `security` has others.
   */
  readonly servers: string | readonly string[];
  /** Shown by the server's monitoring. */
  readonly name?: string;
  /** Credentials and TLS, as the `nats` client takes them. */
  readonly security?: Pick<ConnectionOptions, 'user' | 'pass' | 'token' | 'authenticator' | 'tls'>;
  /** First token of the subjects that replies come to. Default `_INBOX`. */
  readonly inboxPrefix?: string;
  /** Ends the attempts to connect for the first time; they go on for ever otherwise. */
  readonly signal?: AbortSignal;
  /** Told why the first connection is not there yet, once for each reason; for the log. */
  readonly onWaiting?: (reason: string) => void;
}

const RETRY_MS = 200;
const DIAL_LIMIT_MS = 2_000;
const CREDENTIALS = /(?<=^(?:[a-z]+:\/\/)?)[^/@]*@/;

/**
 * Connects, and waits for the server when it is not there yet. Once connected the client reconnects for ever.
 *
 * @throws PatchbayError bus_unavailable when the server refuses the credentials or `signal` aborts
 */
export async function connectNats(options: NatsConnectOptions): Promise<NatsConnection> {
  const { servers, name = 'patchbay', security = {}, inboxPrefix = '_INBOX', signal, onWaiting } = options;
  const urls = (typeof servers === 'string' ? servers.split(',') : servers)
    .map((url) => url.trim())
    .filter((url) => url !== '');
  let lastReason: string | undefined;
  for (;;) {
    try {
      signal?.throwIfAborted();
      return await connect({
        ...credentialsOf(urls),
        ...security,
        servers: urls.map((url) => url.replace(CREDENTIALS, '')),
        name,
        inboxPrefix,
        // A silent link is given up after three seconds, a closed one is dialled again at once.
        pingInterval: 1_000,
        maxPingOut: 2,
        reconnectTimeWait: RETRY_MS,
        maxReconnectAttempts: -1,
        ignoreAuthErrorAbort: true,
        timeout: DIAL_LIMIT_MS,
        noAsyncTraces: true,
      });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      if (signal?.aborted === true || isRefusal(cause)) {
        throw new PatchbayError(
          'bus_unavailable',
          `cannot connect to NATS at ${urls.map((url) => url.replace(CREDENTIALS, '')).join(', ')}: ${reason}`,
          {
            cause,
          },
        );
      }
      if (reason !== lastReason) onWaiting?.(reason);
      lastReason = reason;
      await delay(RETRY_MS, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }
}

const REFUSALS: ReadonlySet<string> = new Set([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AccountExpired,
]);

function isRefusal(error: unknown): boolean {
  return error instanceof NatsError && REFUSALS.has(error.code);
}

/** User and password, or a token, that a URL brings; the client itself does not read them. */
function credentialsOf(urls: readonly string[]): Pick<ConnectionOptions, 'user' | 'pass' | 'token'> {
  for (const url of urls) {
    const [, user, pass] = /^(?:[a-z]+:\/\/)?([^/@:]*)(?::([^/@]*))?@/.exec(url) ?? [];
    if (user === undefined) continue;
    if (pass === undefined) return { token: decodeURIComponent(user) };
    return { user: decodeURIComponent(user), pass: decodeURIComponent(pass) };
  }
  return {};
}
