import type { StoreDatabase } from './store-database.js';

const INTERVAL_MS = 5_000;
/** While the database is away: its return should be noticed soon. */
const INTERVAL_WHEN_DOWN_MS = 1_000;

/** Asks the database for a sign of life now and then, so that its state is known when nothing else asks. */
export class StatusProbe {
  readonly #database: StoreDatabase;
  readonly #stopListening: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(database: StoreDatabase) {
    this.#database = database;
    this.#stopListening = database.onStatus(() => this.#schedule());
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopListening();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    const waitMs = this.#database.isUp ? INTERVAL_MS : INTERVAL_WHEN_DOWN_MS;
    this.#timer = setTimeout(() => {
      // The database notes the outcome itself.
      this.#database
        .ping()
        .catch(() => {})
        .finally(() => this.#schedule());
    }, waitMs).unref();
  }
}
