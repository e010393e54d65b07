import { Pool } from 'undici';
import { residentMb, startPatchbay } from './processes.mjs';

const PARALLEL = 32;

/** Registers many agents through REST, and restarts the node that holds them. */
export async function measureManyAgents({ dataDir, count }) {
  let node = await startPatchbay(dataDir);
  const result = { count, createdInMs: node.readyInMs, rssBeforeMb: await residentMb(node.pid) };
  try {
    const startedAt = performance.now();
    await registerAll(node.url, count);
    result.registrationsPerSecond = count / ((performance.now() - startedAt) / 1_000);
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

async function registerAll(url, count) {
  const pool = new Pool(url, { connections: PARALLEL });
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const body = JSON.stringify(card(next++));
      const headers = { 'content-type': 'application/json' };
      const reply = await pool.request({ path: '/agents/register', method: 'POST', headers, body });
      const text = await reply.body.text();
      if (reply.statusCode !== 200) throw new Error(`registering failed: HTTP ${reply.statusCode} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  await pool.close();
}

/** About 600 bytes with two skills. */
function card(number) {
  const id = `bench-${String(number).padStart(6, '0')}`;
  return {
    agent_id: id,
    name: `Bench agent ${number}`,
    description: 'Translates documents between languages and summarizes them; registered by the benchmark.',
    version: '1.0.0',
    url: `http://127.0.0.1:9/${id}`,
    skills: [
      {
        id: 'translate',
        name: 'Translate',
        description: 'Translates a document into another language',
        tags: ['translate', 'language', `group-${number % 100}`],
      },
      {
        id: 'summarize',
        name: 'Summarize',
        description: 'Summarizes a document in a few sentences',
        tags: ['summarize', 'text'],
      },
    ],
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    protocolVersions: ['1.0'],
  };
}
