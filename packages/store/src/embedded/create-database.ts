/**
 * Runs as a short-lived process of its own: creates an empty database in the folder that is its argument. Creating
 * one takes far more memory than using it, and WebAssembly never gives memory back.
 */
import { PGlite } from '@electric-sql/pglite';
import { DurableNodeFs, DURABLE_START_PARAMS } from './durable-node-fs.js';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: create-database.js <folder>');

// Whoever started this process is gone when the pipe closes: then nobody waits for the database.
process.on('disconnect', () => process.exit(1));
if (!process.connected) process.exit(1);

const database = await PGlite.create({ fs: new DurableNodeFs(folder), startParams: [...DURABLE_START_PARAMS] });
await database.close();
process.exit(0);
