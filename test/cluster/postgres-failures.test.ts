import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAgentIds, listsAll } from '../support/agent-list.js';
import { registerAgent } from '../support/gateway-client.js';
import { callsTo, cardsAt, heartbeatsAt, listsAt, registrationsAt } from '../support/load-callers.js';
import { LoadRecorder } from '../support/load-recorder.js';
import type { LoadRecord } from '../support/load-recorder.js';
import { deregister, heartbeat, tryRegister } from '../support/registry-calls.js';

const TTL_SECONDS = 5;
/** Longer than agents may be silent. */
const AWAY_MS = 8_000;
const BEATING_IDS = Array.from({ length: 6 }, (_, index) => `beating-${index}`);

let agent: ScriptedAgent;
let cluster: PatchbayCluster;
/** What goes on without the database. */
let load: LoadRecorder;
/** Registrations, which need it. */
let writes: LoadRecorder;
let acknowledged: string[];
let rounds = 0;

beforeAll(async () => {
  agent = await startScriptedAgent({ kind: 'echo' });
  const env = { PATCHBAY_AGENT_TTL_SECONDS: String(TTL_SECONDS), PATCHBAY_SWEEP_INTERVAL_SECONDS: '1' };
  cluster = await PatchbayCluster.start({ natsServers: 1, env });
});
afterAll(async () => {
  await cluster.stop();
  await agent[Symbol.asyncDispose]();
});

beforeEach(async () => {
  rounds += 1;
  acknowledged = [];
  await Promise.all(BEATING_IDS.map((agentId) => registerAgent(nodeAt(0), agentId, agent.url)));
  load = new LoadRecorder();
  writes = new LoadRecorder();
  writes.add(
    cluster.nodes.map((node, index) => registrationsAt(node, `round-${rounds}-${index}`, acknowledged, agent.url)),
    100,
  );
  load.add(
    cluster.nodes.flatMap((node) => [
      callsTo(node, BEATING_IDS),
      callsTo(node, BEATING_IDS),
      listsAt(node),
      cardsAt(node, BEATING_IDS),
      // Each agent is heard of every 100 ms.
      heartbeatsAt(node, BEATING_IDS),
    ]),
    50,
  );
  await sleep(1_000);
});
afterEach(async () => {
  await Promise.all([load.stop(), writes.stop()]);
});

function nodeAt(index: number): PatchbayProcess {
  const node = cluster.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

async function storeCondition(node: PatchbayProcess): Promise<unknown> {
  const response = await fetch(`${node.url}/readyz`, { signal: AbortSignal.timeout(2_000) });
  const { conditions } = (await response.json()) as { conditions: { store?: { met?: unknown } } };
  return [response.status, conditions.store?.met];
}

/** Every node takes registrations. @returns when they did */
async function registersAgain(): Promise<number> {
  for (const node of cluster.nodes) {
    const agentId = `after-${rounds}`;
    await eventually(async () => (await tryRegister(node, agentId, agent.url)).status === 200, { withinMs: 20_000 });
  }
  return performance.now();
}

/** The tables tell one story, and every node the same; nobody writes meanwhile but for expiries. */
async function isConsistent(): Promise<void> {
  const query = <Row extends object>(text: string): Promise<Row[]> =>
    cluster.postgres.query<Row>(text, cluster.databaseUrl);
  await eventually(
    async () => {
      const [counts] = await query<Record<string, number>>(`
        select h.revision::int, h.agent_count::int,
          (select count(*)::int from agents) as agents,
          (select count(*)::int from agents join agent_liveness using (agent_id)) as alive,
          (select count(*)::int from agent_liveness) as known_alive,
          (select count(*)::int from registry_events) as events
        from registry_head h`);
      const { agent_count: count, revision } = counts ?? {};
      expect(counts).toMatchObject({ agents: count, alive: count, known_alive: count, events: revision });
      const stored = await query<{ agent_id: string }>('select agent_id from agents order by agent_id');
      for (const node of cluster.nodes) {
        expect((await listAgentIds(node)).toSorted()).toEqual(stored.map((row) => row.agent_id));
      }
      return true;
    },
    { withinMs: 15_000, what: 'tables and directories that agree' },
  );
}

/** Beats that were answered reach the table, and nobody who sent any has expired. */
async function beatsAreKept(): Promise<void> {
  for (const agentId of BEATING_IDS) {
    const { status, body } = await heartbeat(nodeAt(0), agentId);
    expect([agentId, status]).toEqual([agentId, 200]);
    const text = `select extract(epoch from last_seen)::float8 * 1000 as ms from agent_liveness where agent_id = '${agentId}'`;
    await eventually(async () => {
      const [row] = await cluster.postgres.query<{ ms: number }>(text, cluster.databaseUrl);
      return row !== undefined && row.ms >= Date.parse(String(body['last_seen'])) - 1;
    });
  }
}

/** What does not need the database went on as if nothing had happened, and nothing hung. */
function nothingElseSuffered(): void {
  expect(load.failures()).toEqual([]);
  expect(writes.scandals()).toEqual([]);
}

function codesOf(records: readonly LoadRecord[]): Set<string> {
  return new Set(records.map(({ outcome }) => ('code' in outcome ? outcome.code : outcome.kind)));
}

describe('Postgres under load', () => {
  it('is restarted', async () => {
    await cluster.postgres.restart();
    const againMs = await registersAgain();
    await sleep(1_000);
    await writes.stop();
    expect(writes.failures({ fromMs: againMs })).toEqual([]);
    for (const node of cluster.nodes) await listsAll(node, acknowledged.slice(-10));
    await isConsistent();
    await beatsAreKept();
    await load.stop();
    nothingElseSuffered();
  });

  it.each(['killed', 'stopped'])('is %s, away for longer than agents may be silent, and back', async (what) => {
    const leaving = Array.from({ length: 3 }, (_, index) => `leaving-${rounds}-${index}`);
    for (const agentId of leaving) await registerAgent(nodeAt(1), agentId, agent.url);
    if (what === 'killed') await cluster.postgres.kill();
    else cluster.postgres.pause();
    const awayMs = performance.now();
    const left = Promise.all(leaving.map((agentId, n) => deregister(nodeAt(n), agentId)));
    for (const node of cluster.nodes) {
      await eventually(async () => String(await storeCondition(node)) === '200,false', { withinMs: 20_000 });
    }
    for (const { status } of await left) expect(status).toBe(503);
    // Once that is known nobody waits for the refusal.
    const knownMs = performance.now();
    for (const node of cluster.nodes) expect((await tryRegister(node, 'refused', agent.url)).status).toBe(503);
    expect(performance.now() - knownMs).toBeLessThan(3_000);
    await sleep(Math.max(2_500, awayMs + AWAY_MS - performance.now()));
    const backMs = performance.now();
    if (what === 'killed') await cluster.postgres.start();
    else cluster.postgres.resume();
    const againMs = await registersAgain();
    await sleep(1_000);
    await writes.stop();
    // One that was made while it came back may be answered either way.
    expect(codesOf(writes.select({ fromMs: knownMs, toMs: backMs - 1_500 }))).toEqual(new Set(['503']));
    expect(writes.failures({ fromMs: againMs })).toEqual([]);
    await isConsistent();
    await beatsAreKept();
    for (const node of cluster.nodes) expect(await storeCondition(node)).toEqual([200, true]);
    await load.stop();
    nothingElseSuffered();
  });
});
