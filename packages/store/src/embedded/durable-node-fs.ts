import { fsyncSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

type Init = NodeFS['init'];

/** The part of emscripten's file system on Node that we add to. */
interface NodeFsModule {
  readonly NODEFS: { readonly stream_ops: { fsync?: (stream: { readonly nfd: number }) => number } };
}

/**
 * PGlite's files on disk, with an `fsync` that reaches the disk. As shipped it does nothing, so a commit would
 * survive the end of the process but not of the machine.
 */
export class DurableNodeFs extends NodeFS {
  override async init(...[database, options]: Parameters<Init>): ReturnType<Init> {
    const { emscriptenOpts } = await super.init(database, options);
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...preRunsOf(emscriptenOpts.preRun), addFsync] } };
  }
}

function addFsync(module: unknown): void {
  (module as NodeFsModule).NODEFS.stream_ops.fsync = (stream) => {
    fsyncSync(stream.nfd);
    return 0;
  };
}

function preRunsOf<T>(preRun: T | T[] | undefined): T[] {
  if (preRun === undefined) return [];
  return Array.isArray(preRun) ? preRun : [preRun];
}

/**
 * PGlite's own start parameters but for `-F`, which turns durability off; `fsync` because it is the one of Postgres'
 * ways to flush that arrives here (`fdatasync` is a no-op in emscripten).
 */
export const DURABLE_START_PARAMS: readonly string[] = [
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  '-c',
  'wal_sync_method=fsync',
];
