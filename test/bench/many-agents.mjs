import { residentMb, startPatchbay } from './processes.mjs';
import { registerMany } from './registrations.mjs';

const PARALLEL = 32;

/** Registers many agents through REST, and restarts the node that holds them. */
export async function measureManyAgents({ dataDir, count }) {
  let node = await startPatchbay(dataDir);
  const result = { count, createdInMs: node.readyInMs, rssBeforeMb: await residentMb(node.pid) };
  try {
    const { seconds } = await registerMany([node.url], { first: 0, count, parallel: PARALLEL });
    result.registrationsPerSecond = count / seconds;
    result.rssAfterMb = await residentMb(node.pid);
    const stoppingAt = performance.now();
    await node.stop();
    result.stoppedInMs = performance.now() - stoppingAt;

    node = await startPatchbay(dataDir);
    result.restartedInMs = node.readyInMs;
    result.rssRestartedMb = await residentMb(node.pid);
    const listed = await (await fetch(`${node.url}/agents`)).json();
    if (listed.length !== count) throw new Error(`${listed.length} of ${count} agents are there after the restart`);
  } finally {
    await node.stop();
  }
  return result;
}
