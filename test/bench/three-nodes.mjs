import { join } from 'node:path';
import { connect } from 'nats';
import { median, percentile } from './median.mjs';
import { Running, startPatchbay } from './processes.mjs';
import { registerMany } from './registrations.mjs';

const NODES = 3;
const ROUNDS = 3;
const ALONE_PER_ROUND = 100;
const BURST_PER_ROUND = 1_500;
const BURST_PARALLEL = 96;
const ACK_LIMIT_MS = 5_000;

/**
 * What registrations cost on three nodes that share a Postgres: one at a time, many at once, and how long after its
 * event every node has applied it. Medians of rounds.
 */
export async function measureThreeNodes({ folder, servers, log }) {
  const running = new Running();
  try {
    const nats = await running.add(servers.startNats());
    const settings = { PATCHBAY_NATS_URL: nats.url, PATCHBAY_DATABASE_URL: await servers.createDatabase() };
    const nodes = await Promise.all(
      Array.from({ length: NODES }, (_, index) =>
        running.add(startPatchbay(join(folder, `node-${index}`), { ...settings, PATCHBAY_NODE_ID: `node-${index}` })),
      ),
    );
    const urls = nodes.map((node) => node.url);
    const watch = await running.add(watchAcks(nats.url));
    log(`three nodes: ${ROUNDS} rounds of ${ALONE_PER_ROUND} registrations alone and ${BURST_PER_ROUND} at once`);
    await registerMany(urls, { first: 0, count: 200, parallel: 8 }); // warm up
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const first = (round + 1) * 100_000;
      watch.begin();
      const alone = await registerMany(urls, { first, count: ALONE_PER_ROUND, parallel: 1 });
      const appliedMs = await watch.times(ALONE_PER_ROUND);
      const burst = await registerMany(urls, {
        first: first + ALONE_PER_ROUND,
        count: BURST_PER_ROUND,
        parallel: BURST_PARALLEL,
      });
      rounds.push({
        aloneP50Ms: percentile(alone.latenciesMs, 0.5),
        aloneP99Ms: percentile(alone.latenciesMs, 0.99),
        appliedP50Ms: percentile(appliedMs, 0.5),
        appliedP99Ms: percentile(appliedMs, 0.99),
        burstPerSecond: BURST_PER_ROUND / burst.seconds,
        burstP99Ms: percentile(burst.latenciesMs, 0.99),
      });
    }
    return Object.fromEntries(Object.keys(rounds[0]).map((name) => [name, median(rounds.map((one) => one[name]))]));
  } finally {
    await running.stop();
  }
}

/**
 * Watches the bus as anybody may: from an event to the moment when the last node has said that it applied it. Both
 * by the clock of this process.
 */
async function watchAcks(natsUrl) {
  const nats = await connect({ servers: natsUrl });
  const applied = new Map();
  let waiting = [];
  let times = [];
  const settle = () => {
    if (applied.size < NODES) return;
    const everywhere = Math.min(...applied.values());
    const now = performance.now();
    for (const { revision, seenAt } of waiting) if (revision <= everywhere) times.push(now - seenAt);
    waiting = waiting.filter(({ revision }) => revision > everywhere);
  };
  // What the directories follow: the server hands it to us before anybody can have acknowledged it.
  nats.subscribe('patchbay.replication', {
    callback: (error, message) => {
      if (error !== null) return;
      for (const { revision } of message.json()) waiting.push({ revision, seenAt: performance.now() });
    },
  });
  nats.subscribe('patchbay.acks.*', {
    callback: (error, message) => {
      if (error !== null) return;
      const { nodeId, revision } = message.json();
      applied.set(nodeId, Math.max(revision, applied.get(nodeId) ?? 0));
      settle();
    },
  });
  await nats.flush();
  return {
    begin: () => {
      waiting = [];
      times = [];
    },
    /** Of `count` events, when all have come. */
    times: async (count) => {
      const giveUpAt = performance.now() + ACK_LIMIT_MS;
      while (times.length < count) {
        if (performance.now() > giveUpAt) throw new Error(`only ${times.length} of ${count} events were acknowledged`);
        await new Promise((resolve) => {
          setTimeout(resolve, 10);
        });
      }
      return times;
    },
    stop: () => nats.close(),
  };
}
