import { startNatsCluster } from './nats-cluster.js';
import type { NatsCluster } from './nats-cluster.js';
import { NatsServer } from './nats-server.js';
import { PatchbayProcess } from './patchbay-process.js';
import { PostgresServer, startPostgres } from './postgres.js';

/** What a cluster is made of. */
export interface PatchbayClusterOptions {
  /** Nodes of Patchbay. Default 3. */
  readonly nodes?: number;
  /** nats-servers; more than one route to each other. Default 3. */
  readonly natsServers?: number;
  /** Servers of the caller's. Default: `natsServers` are started. */
  readonly nats?: readonly NatsServer[];
  /** A server of the caller's, in which the cluster gets a database of its own. Default: one is started. */
  readonly postgres?: PostgresServer;
  /** Settings of every node. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further settings of the node with that index. */
  readonly envOf?: (index: number) => Readonly<Record<string, string>>;
}

/** Three nodes, three nats-servers and one Postgres, all real processes that can be hurt one by one. */
export class PatchbayCluster implements AsyncDisposable {
  readonly nodes: PatchbayProcess[];
  readonly nats: readonly NatsServer[];
  readonly postgres: PostgresServer;
  readonly databaseUrl: string;
  readonly #options: PatchbayClusterOptions;
  readonly #close: () => Promise<void>;

  private constructor(parts: {
    nats: readonly NatsServer[];
    postgres: PostgresServer;
    databaseUrl: string;
    options: PatchbayClusterOptions;
    close: () => Promise<void>;
  }) {
    this.nodes = [];
    this.nats = parts.nats;
    this.postgres = parts.postgres;
    this.databaseUrl = parts.databaseUrl;
    this.#options = parts.options;
    this.#close = parts.close;
  }

  /** Starts everything; resolves when every node is ready. */
  static async start(options: PatchbayClusterOptions = {}): Promise<PatchbayCluster> {
    const [nats, postgres] = await Promise.all([
      options.nats === undefined ? startNats(options.natsServers ?? 3) : borrowed(options.nats),
      options.postgres ?? startPostgres(),
    ]);
    const cluster = new PatchbayCluster({
      nats: nats.servers,
      postgres,
      databaseUrl: await postgres.createDatabase(),
      options,
      close: async () => {
        await Promise.all([nats.stop(), options.postgres === undefined ? postgres.stop() : undefined]);
      },
    });
    try {
      await Promise.all(Array.from({ length: options.nodes ?? 3 }, (_, index) => cluster.startNode(index)));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** The settings that make a process the node with that index; a process of one service takes them too. */
  envOf(index: number): Record<string, string> {
    // Each node begins with another server, so that calls between nodes cross the routes.
    const first = index % this.nats.length;
    const urls = [...this.nats.slice(first), ...this.nats.slice(0, first)].map((server) => server.url);
    return {
      PATCHBAY_NATS_URL: urls.join(','),
      PATCHBAY_DATABASE_URL: this.databaseUrl,
      PATCHBAY_NODE_ID: `node-${index}`,
      ...this.#options.env,
      ...this.#options.envOf?.(index),
    };
  }

  /** Starts the node with that index, or starts it again after it ended. */
  async startNode(index: number): Promise<PatchbayProcess> {
    const node = await PatchbayProcess.start({ env: this.envOf(index), readyWithinMs: 30_000 });
    this.nodes[index] = node;
    return node;
  }

  /** Ends everything at once. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop('SIGKILL')));
    await this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

type Servers = Pick<NatsCluster, 'servers' | 'stop'>;

async function startNats(size: number): Promise<Servers> {
  if (size > 1) return await startNatsCluster(size);
  const server = await NatsServer.start();
  return { servers: [server], stop: () => server.stop() };
}

function borrowed(servers: readonly NatsServer[]): Servers {
  return { servers, stop: () => Promise.resolve() };
}
