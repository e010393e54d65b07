import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DATA_DIR_TEMPLATE, PatchbayProcess } from '@patchbay/testkit';

/**
 * Runs once before the tests on real processes: lets a node create the embedded database, which costs seconds of
 * processor time, so that every other node starts from a copy. Tests of the creation itself name a folder of their own.
 */
export default async function createTemplate(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-template-'));
  const node = await PatchbayProcess.start({ dataDir: folder, readyWithinMs: 60_000 });
  const code = await node.stop();
  if (code !== 0) throw new Error(`the node that makes the template ended with ${code}:\n${node.output}`);
  process.env[DATA_DIR_TEMPLATE] = folder;
  return async () => {
    await rm(folder, { recursive: true, force: true });
  };
}
