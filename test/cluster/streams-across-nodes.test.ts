import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { OpenStream } from '../support/read-stream.js';

/** The whole product without a front; a front alone, where the clients are; a dispatch alone, which calls the agents. */
const PARTS = ['registry,liveness', 'gateway', 'dispatch'] as const;
const FRONT = 1;
const DISPATCH = 2;
const EVENTS = Array.from({ length: 10_000 }, (_, n) => ({
  data: { jsonrpc: '2.0', id: 1, result: { n } },
  delayMs: n === 0 ? 0 : 20,
}));

let cluster: PatchbayCluster;
let agent: ScriptedAgent;
let echo: ScriptedAgent;

beforeAll(async () => {
  cluster = await PatchbayCluster.start({
    natsServers: 1,
    envOf: (index) => ({ PATCHBAY_SERVICES: PARTS[index] ?? '' }),
  });
  echo = await startScriptedAgent({ kind: 'echo' });
  await registerAgent(nodeAt(FRONT), 'echo', echo.url);
});
afterAll(async () => {
  await cluster.stop();
  await echo[Symbol.asyncDispose]();
});

beforeEach(async () => {
  agent = await startScriptedAgent({ kind: 'stream', events: EVENTS });
  await registerAgent(nodeAt(FRONT), 'streamer', agent.url);
});
afterEach(async () => {
  await agent[Symbol.asyncDispose]();
});

function nodeAt(index: number): PatchbayProcess {
  const node = cluster.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}

function openStreams(count: number): Promise<OpenStream[]> {
  return Promise.all(Array.from({ length: count }, () => OpenStream.open(nodeAt(FRONT), 'streamer')));
}

async function memoryOf(node: PatchbayProcess): Promise<number> {
  const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]);
}

describe('an agent that is down', () => {
  it('is unreachable at once, in the words of the caller, whichever node calls it', async () => {
    await registerAgent(nodeAt(FRONT), 'down', 'http://localhost:9/');
    const { error } = await callAgent(nodeAt(FRONT), 'down');
    expect(error).toMatchObject({ code: -32603, message: expect.stringContaining('agent unreachable') as string });
  });
});

describe('a stream whose client is on one node and whose virtual subscriber is on another', () => {
  it('brings every event, in order, and ends when the agent has said everything', async () => {
    agent.play({ kind: 'stream', events: EVENTS.slice(0, 50) });
    const [stream] = await openStreams(1);
    stream?.read();
    await eventually(() => stream?.isOver, { withinMs: 10_000 });
    const numbers = [...(stream?.text ?? '').matchAll(/"n":(\d+)/g)].map(([, n]) => Number(n));
    expect(numbers).toEqual(Array.from({ length: 49 }, (_, index) => index + 1));
    expect(stream?.looksComplete).toBe(true);
  });

  it("closes the agent's connection when the client leaves", async () => {
    const streams = await openStreams(10);
    expect(agent.inHand).toBe(10);
    for (const stream of streams) stream.leave();
    // Within a second on a quiet machine.
    await eventually(() => agent.inHand === 0, { withinMs: 5_000 });
    expect(agent.abandoned).toBe(10);
  });

  it('ends with an error event when the agent dies', async () => {
    const streams = await openStreams(10);
    for (const stream of streams) stream.read();
    agent.resetConnections();
    for (const stream of streams) {
      await eventually(() => stream.isOver, { withinMs: 5_000 });
      expect(stream.text).toMatch(/^event: error$/m);
      expect(stream.looksComplete).toBe(false);
    }
  });

  it('slows the agent when the client is slow, and nobody else; memory stays bounded', async () => {
    let sentBytes = 0;
    agent.play({
      kind: 'custom',
      handle: async (_request, response) => {
        const event = `data: {"fill":"${'x'.repeat(16_000)}"}\n\n`;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        while (!response.destroyed) {
          sentBytes += event.length;
          if (response.write(event)) continue;
          await new Promise<void>((resolve) => {
            const goOn = (): void => {
              response.off('drain', goOn).off('close', goOn);
              resolve();
            };
            response.on('drain', goOn).on('close', goOn);
          });
        }
      },
    });
    const nodes = [nodeAt(FRONT), nodeAt(DISPATCH)];
    const before = await Promise.all(nodes.map(memoryOf));
    const [stream] = await openStreams(1);
    // Nothing is read: what is under way fills the window and the sockets, and then the agent waits.
    let seenBytes = -1;
    await eventually(
      async () => {
        const isStill = sentBytes === seenBytes;
        seenBytes = sentBytes;
        await sleep(500);
        return isStill;
      },
      { withinMs: 20_000, what: 'an agent that waits' },
    );
    expect(sentBytes).toBeLessThan(40_000_000);
    for (let n = 0; n < 50; n += 1) expect(await callAgent(nodeAt(FRONT), 'echo')).toHaveProperty('result');
    const after = await Promise.all(nodes.map(memoryOf));
    for (const [index, bytes] of after.entries()) expect(bytes - (before[index] ?? 0)).toBeLessThan(60_000_000);
    // Read on, and the agent goes on.
    stream?.read();
    await eventually(() => sentBytes > seenBytes + 5_000_000, { withinMs: 20_000 });
    stream?.leave();
    await eventually(() => agent.inHand === 0, { withinMs: 5_000 });
  });

  it('never looks complete when the node of its virtual subscriber is killed', async () => {
    const streams = await openStreams(10);
    for (const stream of streams) stream.read();
    await nodeAt(DISPATCH).stop('SIGKILL');
    for (const stream of streams) {
      // Seconds by design: 3 without a sign of life.
      await eventually(() => stream.isOver, { withinMs: 15_000 });
      expect(stream.looksComplete).toBe(false);
    }
    await cluster.startNode(DISPATCH);
    await eventually(async () => (await callAgent(nodeAt(FRONT), 'echo')).result, { withinMs: 15_000 });
  });

  it("closes the agent's connection when the node of the client is killed, or stands still", async () => {
    await openStreams(5);
    nodeAt(FRONT).pause();
    await eventually(() => agent.inHand === 0, { withinMs: 15_000 });
    nodeAt(FRONT).resume();
    await eventually(async () => (await callAgent(nodeAt(FRONT), 'echo')).result, { withinMs: 15_000 });

    await openStreams(5);
    expect(agent.inHand).toBe(5);
    await nodeAt(FRONT).stop('SIGKILL');
    await eventually(() => agent.inHand === 0, { withinMs: 15_000 });
    await cluster.startNode(FRONT);
    expect(await callAgent(nodeAt(FRONT), 'echo')).toHaveProperty('result');
  });
});
