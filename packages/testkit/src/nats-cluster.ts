import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { NatsServer } from './nats-server.js';

/** Servers that route to each other. */
export interface NatsCluster extends AsyncDisposable {
  readonly servers: readonly NatsServer[];
  /** URLs of all servers. */
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

/** Starts `size` servers and resolves when each has a route to every other. */
export async function startNatsCluster(size: number): Promise<NatsCluster> {
  const members: { port: number; routePort: number; httpPort: number }[] = [];
  for (let index = 0; index < size; index++) {
    members.push({ port: await freePort(), routePort: await freePort(), httpPort: await freePort() });
  }
  const routes = members.map((member) => `nats-route://127.0.0.1:${member.routePort}`).join(', ');
  const servers: NatsServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (const { port, routePort, httpPort } of members) {
      const cluster = `cluster { name: patchbay-test, listen: "127.0.0.1:${routePort}", routes: [${routes}] }`;
      servers.push(await NatsServer.start({ port, config: `http: "127.0.0.1:${httpPort}"\n${cluster}` }));
    }
    for (const { httpPort } of members) {
      const what = 'the routes of the NATS cluster';
      await eventually(async () => (await routesOf(httpPort)) === size - 1, { withinMs: 15_000, what });
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, urls: servers.map((server) => server.url), stop, [Symbol.asyncDispose]: stop };
}

/** How many other servers one has routes to. */
async function routesOf(httpPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${httpPort}/routez`, { signal: AbortSignal.timeout(2_000) });
  const { routes = [] } = (await response.json()) as { routes?: { remote_id: string }[] };
  return new Set(routes.map((route) => route.remote_id)).size;
}
