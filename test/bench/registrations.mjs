import { Pool } from 'undici';

/** Registers one agent. @throws Error for any answer but 200 */
export async function registerAgent(url, agentId, agentUrl) {
  const response = await fetch(`${url}/agents/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agent_id: agentId, name: 'Bench', url: agentUrl }),
  });
  if (response.status !== 200) throw new Error(`registering failed: HTTP ${response.status} ${await response.text()}`);
  await response.body?.cancel();
}

/**
 * Registers agents through `urls` in turn, `parallel` at a time.
 * @returns {Promise<{ seconds: number, latenciesMs: number[] }>}
 */
export async function registerMany(urls, { first, count, parallel }) {
  const pools = urls.map((url) => new Pool(url, { connections: Math.ceil(parallel / urls.length) }));
  const latenciesMs = [];
  let next = first;
  const worker = async () => {
    while (next < first + count) {
      const number = next++;
      const body = JSON.stringify(card(number));
      const headers = { 'content-type': 'application/json' };
      const startedAt = performance.now();
      const pool = pools[number % pools.length];
      const reply = await pool.request({ path: '/agents/register', method: 'POST', headers, body });
      const text = await reply.body.text();
      if (reply.statusCode !== 200) throw new Error(`registering failed: HTTP ${reply.statusCode} ${text}`);
      latenciesMs.push(performance.now() - startedAt);
    }
  };
  const startedAt = performance.now();
  try {
    await Promise.all(Array.from({ length: parallel }, worker));
  } finally {
    for (const pool of pools) await pool.destroy();
  }
  return { seconds: (performance.now() - startedAt) / 1_000, latenciesMs };
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
