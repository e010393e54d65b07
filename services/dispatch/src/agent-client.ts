import { Agent, buildConnector } from 'undici';

/** Settings of {@link createAgentClient}. */
export interface AgentClientOptions {
  /** Time for a connection to be made, milliseconds. */
  readonly connectTimeoutMs: number;
}

/** The HTTP client for all agents: one pool of connections for each origin, bounded by the concurrency limits. */
export function createAgentClient(options: AgentClientOptions): Agent {
  const connect = buildConnector({
    timeout: options.connectTimeoutMs,
    // `localhost` may be ::1 first while the agent listens on 127.0.0.1 alone.
    autoSelectFamily: true,
  });
  return new Agent({
    connect: (target, callback) =>
      connect(target, (...connected) => {
        connected[1]?.on('error', renameReset);
        callback(...connected);
      }),
    // No limit per origin: several agents may share one, and each has its own limit.
    connections: null,
    // Idle sockets are given up before a server that says nothing closes them (many do after a second). A server's own
    // `Keep-Alive: timeout` is honoured, less a second for the way.
    keepAliveTimeout: 800,
    keepAliveTimeoutThreshold: 1_000,
    keepAliveMaxTimeout: 60_000,
    // The call's deadline and the stream's idle time are the only clocks; undici's would end streams after 300 s.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/**
 * Makes a reset an error. undici takes `ECONNRESET` for the end of a reply that is delimited by the connection's end;
 * a reply that was cut would look finished. This listener is added before undici's own and gives the error another name.
 */
function renameReset(error: NodeJS.ErrnoException): void {
  if (error.code === 'ECONNRESET') error.code = 'PEER_RESET';
}
