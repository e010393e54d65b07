import { EmbeddedDatabase } from './embedded/embedded-database.js';
import { Vacuum } from './embedded/vacuum.js';
import type { LivenessStore } from './liveness-store.js';
import { runMigrations } from './migrations/run-migrations.js';
import { PostgresLivenessStore } from './postgres/postgres-liveness-store.js';
import { PostgresRegistryStore } from './postgres/postgres-registry-store.js';
import { StoreDatabase } from './postgres/store-database.js';
import { StatusProbe } from './postgres/status-probe.js';
import type { RegistryStore } from './registry-store.js';
import type { StoreLog } from './store-log.js';

/** Where the registry is kept. */
export type StoreOptions = EmbeddedStoreOptions | PostgresStoreOptions;

/** A database of our own under `<dataDir>/db`, for one process on one machine. */
export interface EmbeddedStoreOptions {
  readonly kind: 'embedded';
  /** Created when absent. */
  readonly dataDir: string;
  readonly logger: StoreLog;
  /** Told before a database is created, which takes seconds. Default: nobody. */
  readonly onCreating?: () => void;
}

/** A Postgres, version 14 or later, that any number of nodes share. */
export interface PostgresStoreOptions {
  readonly kind: 'postgres';
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  readonly logger: StoreLog;
  /** Most connections of this node. Default 10. */
  readonly maxConnections?: number;
  /** Longest wait for the answer to one statement, in milliseconds. Default 10,000. */
  readonly statementTimeoutMs?: number;
}

/** An open store; whoever opened it closes it. */
export interface OpenedStore {
  readonly registry: RegistryStore;
  readonly liveness: LivenessStore;
  /** Whether the database answered when last asked; it is asked at least every 5 s. */
  readonly isUp: boolean;
  /** Calls `listener` when the database goes away or comes back; returns the way to stop that. */
  onStatus(listener: (isUp: boolean) => void): () => void;
  /** Ends all connections, after statements in flight; leaves an embedded database clean. Idempotent. */
  close(): Promise<void>;
}

/** A database that answers, and what ends with it. */
interface Connection {
  readonly database: StoreDatabase;
  close(): Promise<void>;
}

const DEFAULT_MAX_CONNECTIONS = 10;
/** The embedded database is one backend, and a second connection corrupts what the first one sends. */
const EMBEDDED_CONNECTIONS = 1;
/** It refuses a connection until it has let go of the one before, and while its worker is replaced. */
const EMBEDDED_CONNECT_AGAIN_MS = 5_000;

/**
 * Opens the store and brings its tables up to date.
 * @throws PatchbayError store_unavailable when the database cannot be reached; invalid_argument when the data
 * directory is in use by another process or not usable; unsupported_operation when a newer Patchbay has migrated it
 */
export async function openStore(options: StoreOptions): Promise<OpenedStore> {
  const connection = await connect(options);
  const { database } = connection;
  try {
    await runMigrations(database, options.logger);
  } catch (error) {
    await connection.close();
    throw error;
  }
  const probe = new StatusProbe(database);
  let closing: Promise<void> | undefined;
  return {
    registry: new PostgresRegistryStore(database),
    liveness: new PostgresLivenessStore(database),
    get isUp() {
      return database.isUp;
    },
    onStatus: (listener) => database.onStatus(listener),
    close: () => {
      probe.stop();
      closing ??= connection.close();
      return closing;
    },
  };
}

/**
 * Brings the tables up to date and closes the database again; what `openStore` does first.
 * @returns the names of the migrations that ran now
 * @throws PatchbayError as `openStore` does
 */
export async function migrate(options: StoreOptions): Promise<string[]> {
  const connection = await connect(options);
  try {
    return await runMigrations(connection.database, options.logger);
  } finally {
    await connection.close();
  }
}

async function connect(options: StoreOptions): Promise<Connection> {
  return options.kind === 'postgres' ? connectPostgres(options) : await connectEmbedded(options);
}

function connectPostgres(options: PostgresStoreOptions): Connection {
  const database = new StoreDatabase({
    pool: { connectionString: options.url, max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS },
    logger: options.logger,
    hasServerTimeouts: true,
    ...(options.statementTimeoutMs === undefined ? {} : { statementTimeoutMs: options.statementTimeoutMs }),
  });
  return { database, close: () => database.close() };
}

async function connectEmbedded({ dataDir, logger }: EmbeddedStoreOptions): Promise<Connection> {
  const embedded = await EmbeddedDatabase.start({ dataDir, logger });
  const database = new StoreDatabase({
    pool: {
      host: embedded.socketDir,
      user: 'postgres',
      database: 'postgres',
      max: EMBEDDED_CONNECTIONS,
      idleTimeoutMillis: 0, // kept open: the next one could only come when this one is gone
    },
    logger,
    connectAgainForMs: EMBEDDED_CONNECT_AGAIN_MS,
    hasServerTimeouts: false,
  });
  const stopWatching = embedded.watch(database);
  const vacuum = new Vacuum(database, logger);
  return {
    database,
    close: async () => {
      stopWatching();
      vacuum.stop();
      await database.close();
      await embedded.stop();
    },
  };
}
