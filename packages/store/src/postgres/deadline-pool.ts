import { setTimeout as sleep } from 'node:timers/promises';
import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import { unknownOutcome, sqlStateOf } from './driver-error.js';

/** Told after every statement whether the database answered, and by when it was asked (`performance.now()`). */
export type AnswerListener = (answer: {
  readonly answered: boolean;
  readonly askedAtMs: number;
  readonly error?: unknown;
}) => void;

/** How a {@link DeadlinePool} waits. */
export interface DeadlinePoolOptions {
  readonly statementTimeoutMs: number;
  /** How long a connection that was refused is tried again. Default 0: not. */
  readonly connectAgainForMs?: number;
  readonly onAnswer: AnswerListener;
}

const CONNECT_AGAIN_PAUSE_MS = 50;

/**
 * Gives every statement of a `pg` pool a deadline on this side. A connection whose statement did not answer in time
 * is destroyed, never reused: with pg's own `query_timeout` it would go back to the pool with the old statement
 * still running, and its next user would wait for that one too.
 */
export class DeadlinePool implements PostgresPool {
  readonly #pool: Pool;
  readonly #options: DeadlinePoolOptions;

  constructor(pool: Pool, options: DeadlinePoolOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  async connect(): Promise<PostgresPoolClient> {
    const { statementTimeoutMs, onAnswer, connectAgainForMs = 0 } = this.#options;
    const askedAtMs = performance.now();
    for (;;) {
      try {
        return new DeadlineClient(await this.#pool.connect(), statementTimeoutMs, onAnswer);
      } catch (error) {
        if (performance.now() >= askedAtMs + connectAgainForMs || this.#pool.ending) {
          onAnswer({ answered: false, askedAtMs, error });
          throw error;
        }
        await sleep(CONNECT_AGAIN_PAUSE_MS);
      }
    }
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }
}

class DeadlineClient implements PostgresPoolClient {
  readonly #client: PoolClient;
  readonly #timeoutMs: number;
  readonly #onAnswer: AnswerListener;
  /** Why the connection must not be used again. */
  #broken: Error | undefined;
  readonly #noteError = (error: Error): void => {
    this.#broken ??= error;
  };

  constructor(client: PoolClient, timeoutMs: number, onAnswer: AnswerListener) {
    this.#client = client;
    this.#timeoutMs = timeoutMs;
    this.#onAnswer = onAnswer;
    // A connection that is lost between two statements says so here, and nowhere else.
    client.on('error', this.#noteError);
  }

  query<R>(sql: string, parameters: ReadonlyArray<unknown>): Promise<PostgresQueryResult<R>>;
  query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  query<R>(
    sql: string | PostgresCursor<R>,
    parameters?: ReadonlyArray<unknown>,
  ): Promise<PostgresQueryResult<R>> | PostgresCursor<R> {
    if (typeof sql !== 'string') throw new TypeError('cursors have no deadline and are not offered');
    return this.#query<R>(sql, [...(parameters ?? [])]);
  }

  async #query<R>(sql: string, parameters: unknown[]): Promise<PostgresQueryResult<R>> {
    if (this.#broken !== undefined) throw this.#broken;
    const askedAtMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${this.#timeoutMs} ms`));
      }, this.#timeoutMs);
    });
    const answer = this.#client.query(sql, parameters);
    try {
      const result = await Promise.race([answer, deadline]);
      this.#onAnswer({ answered: true, askedAtMs });
      return result as unknown as PostgresQueryResult<R>;
    } catch (error) {
      answer.catch(() => {}); // the late end of a statement whose deadline has passed
      const answered = sqlStateOf(error) !== undefined;
      this.#onAnswer({ answered, askedAtMs, error });
      if (answered) throw error;
      // Kept for the ROLLBACK that follows a failed COMMIT too: what it throws is what the caller sees.
      this.#broken = sql === 'commit' ? unknownOutcome(error) : (error as Error);
      throw this.#broken;
    } finally {
      clearTimeout(timer);
    }
  }

  release(destroy?: boolean): void {
    this.#client.off('error', this.#noteError);
    this.#client.release(this.#broken ?? destroy ?? false);
  }
}
