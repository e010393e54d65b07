import type { RegistryEvent } from '@patchbay/agent-card';
import { MemoryBus } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import { decodeBody } from '@patchbay/service-api';
import { openStore } from '@patchbay/store';
import type { OpenedStore } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';
import { eventually, startPostgres } from '@patchbay/testkit';
import type { PostgresServer } from '@patchbay/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cardOf, startRegistryNode, storeWith } from './registry-node.js';

let postgres: PostgresServer;
let store: OpenedStore;
let bus: MemoryBus;

beforeAll(async () => {
  postgres = await startPostgres();
});

afterAll(async () => {
  await postgres.stop();
});

beforeEach(async () => {
  store = await openStore({ kind: 'postgres', url: await postgres.createDatabase(), logger: silentLogger() });
  bus = new MemoryBus();
});

afterEach(async () => {
  await bus.close();
  await store.close();
});

describe('register and deregister', () => {
  it('answers the stored agent, which is in the directory by then', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const agent = await node.client.register(cardOf('echo-01', { description: 'says it again' }), 'kubemq');
    expect(agent).toMatchObject({
      record: { agentId: 'echo-01', description: 'says it again' },
      ordinal: 1,
      revision: 1,
    });
    expect(agent.registeredAtMs).toBe(agent.lastSeenMs);
    expect(Math.abs(Date.now() - agent.registeredAtMs)).toBeLessThan(5_000);
    expect(node.directory.get('echo-01')).toEqual(agent);
    expect(await node.client.lookup('echo-01')).toEqual(agent);
  });

  it('keeps registered_at and the place in the list when an agent registers again', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const first = await node.client.register(cardOf('echo-01'), 'kubemq');
    await node.client.register(cardOf('other-01'), 'kubemq');
    const again = await node.client.register(cardOf('echo-01', { name: 'New name' }), 'kubemq');
    expect(again).toMatchObject({
      record: { name: 'New name' },
      ordinal: first.ordinal,
      registeredAtMs: first.registeredAtMs,
    });
    expect(again.lastSeenMs).toBeGreaterThanOrEqual(first.lastSeenMs);
    expect(node.listed()).toEqual(['echo-01', 'other-01']);
  });

  it('starts anew after a deregistration', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const first = await node.client.register(cardOf('echo-01'), 'kubemq');
    await node.client.register(cardOf('other-01'), 'kubemq');
    await node.client.deregister('echo-01');
    expect(node.listed()).toEqual(['other-01']);
    expect(await node.client.lookup('echo-01')).toBeNull();
    const again = await node.client.register(cardOf('echo-01'), 'kubemq');
    expect(again.registeredAtMs).toBeGreaterThan(first.registeredAtMs);
    expect(node.listed()).toEqual(['other-01', 'echo-01']);
  });

  it('does not find what is not there', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    for (const agentId of ['nobody', 'Not An Id', '*', '']) {
      await expect(node.client.deregister(agentId)).rejects.toMatchObject({
        code: 'agent_not_found',
        message: 'agent not found',
      });
      expect(await node.client.lookup(agentId)).toBeNull();
    }
    expect((await store.registry.head()).revision).toBe(0);
  });

  it.each([
    ['{"agent_id":"My Agent","name":"x","url":"http://h/"}', 'invalid_argument', /^agent_id must be/],
    ['{"agent_id":"ab","name":"x","url":"/relative"}', 'invalid_argument', /^url must be/],
    ['{"agent_id":"ab","name":"x","url":"http://h/","x":"\\u0000"}', 'invalid_argument', /U\+0000/],
    ['{"agent_id":"ab","name":"x","url":"http://h/","name":"y"}', 'invalid_argument', /given twice/],
    ['not json', 'parse_error', /JSON/],
    [`{"agent_id":"ab","name":"x","url":"http://h/","x":"${'x'.repeat(262_144)}"}`, 'request_too_large', /262144/],
  ])('stores nothing of the bad card %.60s', async (card, code, message) => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const refusal = node.client.register(Buffer.from(card), 'kubemq');
    await expect(refusal).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await store.registry.head()).toMatchObject({ revision: 0, agentCount: 0 });
    expect(node.directory.size).toBe(0);
  });

  it('gives the same registration to a client whose answer was lost', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const leaving = new AbortController();
    const stop = node.directory.onChange(() => leaving.abort());
    const lost = node.client.register(cardOf('echo-01'), 'kubemq', { signal: leaving.signal });
    await expect(lost).rejects.toMatchObject({ code: 'cancelled' });
    stop();
    const registeredAtMs = node.directory.get('echo-01')?.registeredAtMs;
    const retried = await node.client.register(cardOf('echo-01'), 'kubemq');
    expect(retried).toMatchObject({ ordinal: 1, registeredAtMs });
    expect((await store.registry.head()).agentCount).toBe(1);
  });

  it('publishes each change for whoever watches', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const seen: string[] = [];
    bus.subscribe('patchbay.events.>', ({ subject, body, headers }) => {
      const { revision, agentId } = decodeBody<RegistryEvent>(body);
      seen.push(`${subject} ${revision} ${agentId} ${headers['traceparent'] ?? '-'}`);
    });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await node.client.register(cardOf('echo-01'), 'kubemq', { headers: { traceparent } });
    await node.client.register(cardOf('echo-01'), 'kubemq');
    await node.client.deregister('echo-01');
    await bus.flush();
    expect(seen).toEqual([
      `patchbay.events.registered.echo-01 1 echo-01 ${traceparent}`,
      'patchbay.events.updated.echo-01 2 echo-01 -',
      'patchbay.events.deregistered.echo-01 3 echo-01 -',
    ]);
  });
});

describe('limits and groups', () => {
  it('gives the last place to exactly one of 50 that race for it, on two nodes', async () => {
    const maxAgents = 3;
    await using node = await startRegistryNode({ bus, store: store.registry, maxAgents });
    await using other = await startRegistryNode({ bus, store: store.registry, maxAgents, nodeId: 'node-b' });
    await node.client.register(cardOf('first-01'), 'kubemq');
    await node.client.register(cardOf('first-02'), 'kubemq');
    const racing = Array.from({ length: 50 }, (_, index) =>
      node.client.register(cardOf(`racer-${index}`), 'kubemq').then(
        () => 'registered',
        (error: unknown) => (error instanceof PatchbayError ? error.code : String(error)),
      ),
    );
    const outcomes = await Promise.all(racing);
    expect(outcomes.filter((outcome) => outcome === 'registered')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'agent_limit_reached')).toHaveLength(49);
    expect((await store.registry.head()).agentCount).toBe(3);
    expect(node.directory.size).toBe(3);
    expect(other.listed()).toEqual(node.listed());
    await expect(node.client.register(cardOf('late-01'), 'kubemq')).rejects.toThrow(/limit of 3 agents/);
    await node.client.register(cardOf('first-01', { name: 'again' }), 'kubemq');
    await node.client.deregister('first-01');
    await node.client.register(cardOf('late-01'), 'kubemq');
  });

  it('groups concurrent writes into few transactions, each with its own outcome', async () => {
    let transactions = 0;
    const counting = storeWith(store.registry, {
      write: (writes, options) => {
        transactions += 1;
        return store.registry.write(writes, options);
      },
    });
    await using node = await startRegistryNode({ bus, store: counting });
    const registering = Array.from({ length: 1_000 }, (_, index) =>
      node.client.register(cardOf(`agent-${index}`), 'kubemq'),
    );
    const missing = expect(node.client.deregister('nobody')).rejects.toMatchObject({ code: 'agent_not_found' });
    const agents = await Promise.all(registering);
    await missing;
    expect(new Set(agents.map((agent) => agent.revision)).size).toBe(1_000);
    expect(node.directory.size).toBe(1_000);
    expect(transactions).toBeLessThan(20);
  });

  it('orders concurrent registrations of one id', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const agents = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        node.client.register(cardOf('same-01', { version: `${index}` }), 'kubemq'),
      ),
    );
    expect(new Set(agents.map((agent) => agent.ordinal))).toEqual(new Set([1]));
    expect(agents.map((agent) => agent.record.version)).toEqual(agents.map((_, index) => `${index}`));
    expect(node.directory.get('same-01')?.record.version).toBe('19');
  });
});

describe('several nodes', () => {
  it('answers when every node has applied the change', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    await using other = await startRegistryNode({ bus, store: store.registry, nodeId: 'node-b' });
    await eventually(() => node.membership.members().length === 2 && other.membership.members().length === 2);
    for (let turn = 0; turn < 10; turn += 1) {
      await node.client.register(cardOf(`agent-${turn}`), 'kubemq');
      expect(node.listed()).toEqual(other.listed());
      expect(other.directory.get(`agent-${turn}`)).toBeDefined();
    }
    await node.client.deregister('agent-0');
    expect(node.directory.get('agent-0') ?? other.directory.get('agent-0')).toBeUndefined();
  });

  it('loads a node that comes later, and one that missed everything', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    await Promise.all(
      Array.from({ length: 1_500 }, (_, index) =>
        node.client.register(cardOf(`agent-${index}`, { description: 'd'.repeat(600) }), 'kubemq'),
      ),
    );
    await using late = await startRegistryNode({ bus, store: store.registry, nodeId: 'node-b' });
    expect(late.directory.list()).toEqual(node.directory.list());
  });

  it('finds writes that nobody told of by looking at the head', async () => {
    await using node = await startRegistryNode({ bus, store: store.registry });
    const { record } = await node.client.register(cardOf('echo-01'), 'kubemq');
    // A node that died between its commit and its event.
    const write = {
      kind: 'register' as const,
      record: { ...record, agentId: 'silent-01' },
      cardRaw: cardOf('silent-01'),
    };
    await store.registry.write([write], { nodeId: 'dead', maxAgents: 0 });
    await eventually(() => node.directory.get('silent-01') !== undefined, { what: 'the silent write' });
  });
});

describe('a database in trouble', () => {
  it('announces a write that was committed although its answer was lost', async () => {
    let isAnswerLost = true;
    const losing = storeWith(store.registry, {
      write: async (writes, options) => {
        const outcomes = await store.registry.write(writes, options);
        if (isAnswerLost) throw new PatchbayError('store_unavailable', 'the answer to COMMIT was lost');
        return outcomes;
      },
    });
    await using node = await startRegistryNode({ bus, store: losing });
    const watched: string[] = [];
    bus.subscribe('patchbay.events.>', ({ subject }) => void watched.push(subject));
    await expect(node.client.register(cardOf('echo-01'), 'kubemq')).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await eventually(() => node.directory.get('echo-01') !== undefined, { withinMs: 1_000 });
    isAnswerLost = false;
    const again = await node.client.register(cardOf('echo-01'), 'kubemq');
    expect(again.ordinal).toBe(1);
    await bus.flush();
    expect(watched).toEqual(['patchbay.events.registered.echo-01', 'patchbay.events.updated.echo-01']);
  });

  it('refuses writes while the database is away, half-does nothing, and goes on afterwards', async () => {
    await using server = await startPostgres();
    const own = await openStore({ kind: 'postgres', url: server.url, logger: silentLogger() });
    try {
      await using node = await startRegistryNode({ bus, store: own.registry });
      await node.client.register(cardOf('echo-01'), 'kubemq');
      await server.kill();
      const refused = node.client.register(cardOf('late-01'), 'kubemq');
      await expect(refused).rejects.toMatchObject({ code: 'store_unavailable' });
      await expect(node.client.deregister('echo-01')).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(node.listed()).toEqual(['echo-01']);
      const isStoreUp = (): boolean => node.membership.members().every(({ beat }) => beat.store);
      await eventually(() => !isStoreUp());
      await server.start();
      const register = (): Promise<unknown> => node.client.register(cardOf('late-01'), 'kubemq');
      await eventually(register, { withinMs: 20_000 });
      expect(node.listed()).toEqual(['echo-01', 'late-01']);
      expect((await own.registry.head()).revision).toBeLessThanOrEqual(3);
      await eventually(isStoreUp);
    } finally {
      await own.close();
    }
  });
});

describe('drain', () => {
  it('finishes what is in hand and takes nothing new', async () => {
    const node = await startRegistryNode({ bus, store: store.registry });
    const inHand = Array.from({ length: 20 }, (_, index) => node.client.register(cardOf(`agent-${index}`), 'kubemq'));
    await node[Symbol.asyncDispose]();
    await Promise.all(inHand);
    await expect(node.client.register(cardOf('late-01'), 'kubemq')).rejects.toMatchObject({ code: 'no_dispatcher' });
    expect((await store.registry.head()).agentCount).toBe(20);
    expect(bus.stats()).toMatchObject({ subscriptions: 0, requests: 0, streams: 0, exchanges: 0 });
  });
});
