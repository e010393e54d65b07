import { sql } from 'kysely';
import type { StoreDatabase } from '../postgres/store-database.js';
import type { StoreLog } from '../store-log.js';

const INTERVAL_MS = 600_000;
const TABLES = ['agents', 'agent_liveness', 'registry_events', 'registry_head', 'liveness_sweep'] as const;

/**
 * Clears away dead rows and refreshes the planner's statistics now and then, which a Postgres server does by itself
 * (autovacuum) and the embedded one does not. One table at a time, so that nobody waits for long.
 */
export class Vacuum {
  readonly #database: StoreDatabase;
  readonly #logger: StoreLog;
  readonly #timer: NodeJS.Timeout;

  constructor(database: StoreDatabase, logger: StoreLog) {
    this.#database = database;
    this.#logger = logger;
    this.#timer = setInterval(() => void this.run(), INTERVAL_MS).unref();
  }

  async run(): Promise<void> {
    for (const table of TABLES) {
      try {
        await this.#database.read((connection) => sql`vacuum (analyze) ${sql.table(table)}`.execute(connection));
      } catch (error) {
        this.#logger.warn({ err: error, table }, 'a table was not vacuumed; trying again later');
      }
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
