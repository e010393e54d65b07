/**
 * Runs as a worker thread: opens the database and serves Postgres' protocol on a unix socket, to one connection.
 * With more, the socket server would interleave their messages on the one backend.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { DurableNodeFs, DURABLE_START_PARAMS } from './durable-node-fs.js';

/** What the worker is started with. */
export interface DatabaseWorkerData {
  readonly folder: string;
  readonly socketPath: string;
}

/** What the worker says. */
export type DatabaseWorkerMessage = 'ready' | 'closed';

const MAX_CONNECTIONS = 1;

if (parentPort === null) throw new Error('database-worker.js runs as a worker thread');
const parent = parentPort;
const { folder, socketPath } = workerData as DatabaseWorkerData;

const db = await PGlite.create({ fs: new DurableNodeFs(folder), startParams: [...DURABLE_START_PARAMS] });
const server = new PGLiteSocketServer({ db, path: socketPath, maxConnections: MAX_CONNECTIONS });
await server.start();

// The one thing the owner ever asks for: leave the database clean.
parent.once('message', () => {
  void close();
});
tell('ready');

async function close(): Promise<void> {
  await server.stop();
  await db.close();
  tell('closed');
  parent.close();
}

function tell(message: DatabaseWorkerMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parent.postMessage(message);
}
