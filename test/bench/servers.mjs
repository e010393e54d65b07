import { chmod, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { Part } from '../../scripts/cluster/part.mjs';
import { startPostgres } from '../../scripts/cluster/start-postgres.mjs';

const STOP_LIMIT_MS = 20_000;

/**
 * Real servers for a benchmark. Postgres flushes what it commits, unlike the one of the tests: registrations are
 * measured as they are in use.
 */
export class BenchServers {
  #testkit;
  #postgres;
  #databases = 0;

  /** @param {string} folder For its data; as root another user must be able to enter it. */
  static async start(folder) {
    const testkit = await import('../../packages/testkit/dist/index.js');
    await testkit.ensureNatsServer();
    const user = testkit.postgresUser();
    const bin = await testkit.enterableBin(await testkit.ensurePostgres(), user);
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o755);
    const servers = new BenchServers();
    servers.#testkit = testkit;
    servers.#postgres = await startPostgres({
      bin,
      env: testkit.postgresEnvironment(bin),
      user,
      folder,
      port: await freePort(),
      start: (part) => new Part({ ...part, logFile: join(folder, 'postgres.log'), show: console.error }),
      say: console.log,
    });
    return servers;
  }

  /** A stock nats-server. */
  startNats() {
    return this.#testkit.startNatsServer();
  }

  /** URL of a new, empty database. */
  async createDatabase() {
    const { default: pg } = await import('pg');
    const name = `bench_${++this.#databases}`;
    const client = new pg.Client({ connectionString: this.#postgres.url });
    await client.connect();
    try {
      await client.query(`create database ${name} template template0`);
    } finally {
      await client.end();
    }
    return this.#postgres.url.replace(/[^/]+$/, name);
  }

  async stop() {
    await this.#postgres.part.stop(STOP_LIMIT_MS);
  }
}

async function freePort() {
  const server = createServer();
  await once(server.listen(0), 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
