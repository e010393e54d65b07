import { createServer } from 'node:net';

/** Away from the defaults of nodes (9090, 8080, 9091), NATS (4222, 6222, 8222) and Postgres (5432). */
const PORTS = { http: 9191, metrics: 9291, grpc: 9391, nats: 4322, routes: 6322, monitoring: 8322, postgres: 5532 };
const NODES = 3;

/**
 * Names and ports of everything.
 * @param {{ natsServers: number, portOffset: number }} options
 */
export function layOut({ natsServers, portOffset }) {
  const port = (kind, index = 0) => PORTS[kind] + index + portOffset;
  return {
    nodes: count(NODES, (index) => ({
      name: `node-${index + 1}`,
      http: port('http', index),
      metrics: port('metrics', index),
      grpc: port('grpc', index),
    })),
    nats: count(natsServers, (index) => ({
      name: `nats-${index + 1}`,
      port: port('nats', index),
      routes: port('routes', index),
      monitoring: port('monitoring', index),
    })),
    postgres: { name: 'postgres', port: port('postgres') },
  };
}

/** @throws Error that names the first port that somebody else uses */
export async function checkPorts({ nodes, nats, postgres }) {
  const wanted = [
    ...nodes.flatMap(({ name, http, metrics }) => [
      { name, what: 'gateway', port: http },
      { name, what: 'metrics', port: metrics },
    ]),
    ...nats.flatMap(({ name, port, routes, monitoring }) => [
      { name, what: 'clients', port },
      { name, what: 'monitoring', port: monitoring },
      ...(nats.length > 1 ? [{ name, what: 'routes', port: routes }] : []),
    ]),
    { name: postgres.name, what: 'database', port: postgres.port },
  ];
  for (const { name, what, port } of wanted) {
    if ((await isFree(port, '127.0.0.1')) && (await isFree(port, '::1'))) continue;
    throw new Error(
      `${name}: port ${port} (${what}) is in use, perhaps by another "npm run cluster"; stop that, or move all ports: ` +
        'npm run cluster -- --port-offset 1000',
    );
  }
}

function count(size, make) {
  return Array.from({ length: size }, (_, index) => make(index));
}

function isFree(port, host) {
  return new Promise((resolve) => {
    const server = createServer();
    // A machine without IPv6 has no ::1, and so nobody on it.
    server.once('error', ({ code }) => resolve(code !== 'EADDRINUSE'));
    server.listen({ port, host }, () => server.close(() => resolve(true)));
  });
}
