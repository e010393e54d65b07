import { join } from 'node:path';
import { ROOT } from '../lib/root.mjs';
import { fetchJson, readyOrEnded } from './ready.mjs';

const READY_WITHIN_MS = 20_000;

/**
 * Starts the nats-servers with the configurations in infra/nats, on this machine alone.
 * @param {object} options
 * @param {string} options.command nats-server
 * @param {ReturnType<typeof import('./layout.mjs').layOut>['nats']} options.servers
 * @param {{ node: string, caller: string, watcher: string, routes: string }} options.passwords
 * @param {(part: object) => import('./part.mjs').Part} options.start
 */
export async function startNats({ command, servers, passwords, start }) {
  const isCluster = servers.length > 1;
  const config = join(ROOT, 'infra', 'nats', isCluster ? 'three-servers.conf' : 'one-server.conf');
  const routes = servers.map((server) => `"nats://routes:${passwords.routes}@127.0.0.1:${server.routes}"`);
  const parts = servers.map((server) =>
    start({
      name: server.name,
      command,
      args: ['-c', config, '-n', server.name, '-a', '127.0.0.1', '-p', server.port, '-m', server.monitoring].map(
        String,
      ),
      env: {
        PATH: process.env.PATH,
        NATS_NODE_PASSWORD: quoted(passwords.node),
        NATS_CALLER_PASSWORD: quoted(passwords.caller),
        NATS_WATCHER_PASSWORD: quoted(passwords.watcher),
        NATS_ROUTES_LISTEN: quoted(`127.0.0.1:${server.routes}`),
        NATS_ROUTES_PASSWORD: quoted(passwords.routes),
        NATS_ROUTES: `[${routes.join(', ')}]`,
      },
      stopSignal: 'TERM',
      // Not that the other servers are still starting.
      isNews: (line) => !/\[(INF|WRN|DBG|TRC)\]|route \(attempt 1\)/.test(line),
      complaint: /\[FTL\]|nats-server:/,
    }),
  );
  await Promise.all(
    parts.map((part, index) =>
      readyOrEnded(part, READY_WITHIN_MS, async () => {
        const { routes: known = [] } = await fetchJson(`http://127.0.0.1:${servers[index].monitoring}/routez`);
        return new Set(known.map((route) => route.remote_id)).size === servers.length - 1;
      }),
    ),
  );
  return parts;
}

/** For the configuration's reader, which takes a value that begins with a digit for a number. */
function quoted(text) {
  return `"${text}"`;
}
