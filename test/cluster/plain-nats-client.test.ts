import { eventually, PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { ScriptedAgent } from '@patchbay/testkit';
import { connect, headers, RequestStrategy } from 'nats';
import type { Msg, NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerAgent } from '../support/gateway-client.js';
import { deregister } from '../support/registry-calls.js';

const EVENTS = Array.from({ length: 20 }, (_, n) => ({ data: { jsonrpc: '2.0', id: 1, result: { n } }, delayMs: 5 }));

let cluster: PatchbayCluster;
let client: NatsConnection;
let agents: ScriptedAgent[];

beforeAll(async () => {
  cluster = await PatchbayCluster.start({ nodes: 2 });
  client = await connect({ servers: cluster.nats[2]?.url ?? '' });
  const scripts = {
    echo: { kind: 'echo' },
    streamer: { kind: 'stream', events: EVENTS },
    huge: { kind: 'oversize', bytes: 2_000_000 },
  } as const;
  agents = [];
  for (const [agentId, script] of Object.entries(scripts)) {
    const agent = await startScriptedAgent(script);
    agents.push(agent);
    await registerAgent(node(0), agentId, agent.url);
  }
  await registerAgent(node(1), 'down', 'http://localhost:9/');
});
afterAll(async () => {
  await client.close();
  await cluster.stop();
  for (const agent of agents) await agent[Symbol.asyncDispose]();
});

function node(index: number) {
  const found = cluster.nodes[index];
  if (found === undefined) throw new Error(`there is no node ${index}`);
  return found;
}

function request(method: string, params: unknown = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
}

/** What `nats request` does. */
async function ask(agentId: string, body: string, version?: string): Promise<Msg> {
  const sent = headers();
  if (version !== undefined) sent.set('A2A-Version', version);
  return await client.request(`a2a.${agentId}`, body, { timeout: 10_000, headers: sent });
}

describe('a plain NATS client', () => {
  it('calls agents by request and reply, whichever node serves them', async () => {
    for (let n = 0; n < 50; n += 1) {
      const reply = await ask('echo', request('message/send', { n }));
      expect(reply.json()).toEqual({ jsonrpc: '2.0', id: 7, result: { echo: { n } } });
    }
  });

  it('gets the same errors as other callers', async () => {
    const unreachable = await ask('down', request('message/send'));
    expect(unreachable.json()).toMatchObject({ id: 7, error: { code: -32603 } });
    expect(unreachable.headers?.get('Patchbay-Error')).toBe('agent_unreachable');
    const versioned = await ask('down', request('SendMessage'), '1.0');
    expect(versioned.json()).toMatchObject({ error: { data: [{ reason: 'AGENT_UNREACHABLE' }] } });
    expect((await ask('echo', 'no JSON')).json()).toMatchObject({ id: null, error: { code: -32700 } });
    // Nobody serves it: NATS itself says so.
    await expect(ask('nobody', request('message/send'))).rejects.toMatchObject({ code: '503' });
  });

  it('gets a stream as one message for each event, and one that marks the end', async () => {
    const replies = await client.requestMany('a2a.streamer', request('message/stream'), {
      strategy: RequestStrategy.Timer,
      maxWait: 3_000,
    });
    const events: unknown[] = [];
    for await (const reply of replies) {
      if (reply.headers?.get('Patchbay-Frame') === 'end') break;
      events.push(reply.json());
    }
    expect(events).toEqual(EVENTS.map(({ data }) => data));
  });

  it('is told of a reply that is larger than a message', async () => {
    const reply = await ask('huge', request('message/send'));
    expect(reply.headers?.get('Patchbay-Error')).toBe('response_too_large');
  });

  it('sees agents come and go', async () => {
    const seen: string[] = [];
    const watch = client.subscribe('patchbay.events.>', { callback: (_error, { subject }) => void seen.push(subject) });
    await client.flush();
    await registerAgent(node(0), 'visitor', 'http://localhost:9/');
    await registerAgent(node(1), 'visitor', 'http://localhost:9/');
    await deregister(node(1), 'visitor');
    const kinds = ['registered', 'updated', 'deregistered'];
    await eventually(() => seen.length >= 3);
    watch.unsubscribe();
    // Each may come from another node, so their order is not promised.
    expect(seen.toSorted()).toEqual(kinds.map((kind) => `patchbay.events.${kind}.visitor`).toSorted());
  });
});
