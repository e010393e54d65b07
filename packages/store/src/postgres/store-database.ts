import { Kysely, PostgresDialect, sql } from 'kysely';
import type { Transaction } from 'kysely';
import { Pool, types } from 'pg';
import type { PoolConfig } from 'pg';
import type { StoreLog } from '../store-log.js';
import { DeadlinePool } from './deadline-pool.js';
import type { AnswerListener } from './deadline-pool.js';
import { toStoreError } from './driver-error.js';
import type { StoreSchema } from './schema.js';

/** One transaction, or one connection that reads: what all statements of a method go through. */
export type StoreConnection = Transaction<StoreSchema> | Kysely<StoreSchema>;

/** How a {@link StoreDatabase} connects. */
export interface StoreDatabaseOptions {
  readonly pool: PoolConfig;
  readonly logger: StoreLog;
  /** Longest wait for the answer to one statement. Default 10,000. */
  readonly statementTimeoutMs?: number;
  /** How long a refused connection is tried again before a statement fails. Default 0. */
  readonly connectAgainForMs?: number;
  /**
   * Whether the server is told to give up what this side has given up (a node that is stopped inside a transaction
   * would hold the head row for ever). Not for the embedded database, whose only backend dies of such timeouts.
   */
  readonly hasServerTimeouts: boolean;
}

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** A migration may rewrite a large table, or wait for the node that runs it. */
const MIGRATION_STATEMENT_TIMEOUT_MS = 300_000;
/** How long after this side's deadline the server gives up by itself. */
const SERVER_TIMEOUT_MARGIN_MS = 2_000;
const INT8_OID = 20;

/**
 * The one way to the database. Nothing here hands out the pool: a method gets one connection or one transaction and
 * passes it down, because a second connection taken inside a transaction would wait for ever on a pool of one.
 */
export class StoreDatabase {
  readonly #db: Kysely<StoreSchema>;
  readonly #pool: Pool;
  readonly #logger: StoreLog;
  readonly #serverTimeoutMs: number | undefined;
  readonly #listeners = new Set<(isUp: boolean) => void>();
  #isUp = true;
  #isChecking = false;
  #isClosed = false;
  #lastAnswerAtMs = performance.now();

  constructor(options: StoreDatabaseOptions) {
    const statementTimeoutMs = options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS;
    this.#logger = options.logger;
    this.#serverTimeoutMs = options.hasServerTimeouts ? statementTimeoutMs + SERVER_TIMEOUT_MARGIN_MS : undefined;
    this.#pool = new Pool({
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'patchbay',
      keepAlive: true,
      types: { getTypeParser: typeParser },
      ...options.pool,
    });
    // An idle connection that is lost is an event of the pool, and an uncaught exception without this. It need not
    // mean that the database is away (poolers close idle connections), so that is asked.
    this.#pool.on('error', () => this.#check());
    const pool = new DeadlinePool(this.#pool, {
      statementTimeoutMs,
      connectAgainForMs: options.connectAgainForMs ?? 0,
      onAnswer: (answer) => this.#noteAnswer(answer),
    });
    this.#db = new Kysely<StoreSchema>({ dialect: new PostgresDialect({ pool }) });
  }

  /** Whether the last statement was answered. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** When a statement was last answered, on the monotonic clock of `performance.now()`. */
  get lastAnswerAtMs(): number {
    return this.#lastAnswerAtMs;
  }

  /** Calls `listener` when the database goes away or comes back; returns the way to stop that. */
  onStatus(listener: (isUp: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs reading statements on one connection. @throws PatchbayError store_unavailable */
  async read<T>(run: (connection: StoreConnection) => Promise<T>): Promise<T> {
    try {
      return await this.#db.connection().execute(run);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Runs statements in one READ COMMITTED transaction. @throws PatchbayError store_unavailable */
  async write<T>(run: (transaction: Transaction<StoreSchema>) => Promise<T>): Promise<T> {
    try {
      return await this.#db.transaction().execute(async (transaction) => {
        await this.#limit(transaction);
        return await run(transaction);
      });
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Runs reading statements that all see the same point in time. @throws PatchbayError store_unavailable */
  async readConsistently<T>(run: (transaction: Transaction<StoreSchema>) => Promise<T>): Promise<T> {
    try {
      return await this.#db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute(async (transaction) => {
          await this.#limit(transaction);
          return await run(transaction);
        });
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Runs a change of tables in one transaction with a deadline to suit. @throws PatchbayError store_unavailable */
  async migrate<T>(run: (transaction: Transaction<StoreSchema>) => Promise<T>): Promise<T> {
    const pool = new DeadlinePool(this.#pool, {
      statementTimeoutMs: MIGRATION_STATEMENT_TIMEOUT_MS,
      onAnswer: (answer) => this.#noteAnswer(answer),
    });
    // Never destroyed: that would end the pool, which is shared.
    const db = new Kysely<StoreSchema>({ dialect: new PostgresDialect({ pool }) });
    try {
      return await db.transaction().execute(run);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Asks the database for a sign of life. @throws PatchbayError store_unavailable */
  async ping(): Promise<void> {
    await this.read((connection) => sql`select 1`.execute(connection));
  }

  /** Ends all connections; statements in flight get their answer first. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (!this.#pool.ending) await this.#pool.end();
  }

  /** For this transaction alone, so that connection poolers in between are no hindrance. */
  async #limit(transaction: Transaction<StoreSchema>): Promise<void> {
    if (this.#serverTimeoutMs === undefined) return;
    const timeout = `${this.#serverTimeoutMs}ms`;
    await sql`select set_config('statement_timeout', ${timeout}, true),
                     set_config('idle_in_transaction_session_timeout', ${timeout}, true)`.execute(transaction);
  }

  #check(): void {
    if (this.#isChecking || this.#isClosed) return;
    this.#isChecking = true;
    this.ping()
      .catch(() => {}) // noted already
      .finally(() => (this.#isChecking = false));
  }

  #noteAnswer({ answered, askedAtMs, error }: Parameters<AnswerListener>[0]): void {
    if (answered) this.#lastAnswerAtMs = performance.now();
    // Somebody else was answered meanwhile: the database is busy, not away.
    else if (this.#lastAnswerAtMs > askedAtMs) return;
    if (answered === this.#isUp || this.#isClosed) return;
    this.#isUp = answered;
    if (answered) this.#logger.info({}, 'the database answers again');
    else this.#logger.warn({ err: error }, 'the database does not answer');
    for (const listener of this.#listeners) listener(answered);
  }
}

/** Revisions are `bigint`, which pg hands over as text; 2^53 of them are enough for a number. */
function typeParser(oid: number): (value: string) => unknown {
  if (oid === INT8_OID) return Number;
  // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- any oid may come; pg's types name the built-in ones
  return types.getTypeParser(oid);
}
