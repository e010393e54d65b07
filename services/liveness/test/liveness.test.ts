import { MemoryBus } from '@patchbay/bus';
import { ManualClock } from '@patchbay/core';
import { openStore } from '@patchbay/store';
import type { OpenedStore } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';
import { eventually, startPostgres } from '@patchbay/testkit';
import type { PostgresServer } from '@patchbay/testkit';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BreakableBus, registerAgent, serveLookups, startLivenessNode, subjects } from './liveness-node.js';
import type { LivenessNode } from './liveness-node.js';

const TTL_SECONDS = 300;
let postgres: PostgresServer;
let database: Client;
let store: OpenedStore;
let bus: MemoryBus;

beforeAll(async () => {
  postgres = await startPostgres();
});

afterAll(async () => {
  await postgres.stop();
});

beforeEach(async () => {
  const url = await postgres.createDatabase();
  store = await openStore({ kind: 'postgres', url, logger: silentLogger() });
  database = new Client({ connectionString: url });
  await database.connect();
  bus = new MemoryBus();
  serveLookups(bus, store.registry);
});

afterEach(async () => {
  await bus.close();
  await database.end();
  await store.close();
});

/** Lets the database believe that `seconds` passed in which nothing was written. */
async function letPass(seconds: number): Promise<void> {
  const interval = `${seconds} seconds`;
  await database.query('update agent_liveness set last_seen = last_seen - $1::interval', [interval]);
  await database.query(
    'update liveness_sweep set completed_at = completed_at - $1::interval, grace_until = grace_until - $1::interval',
    [interval],
  );
}

async function storedMs(agentId: string): Promise<number | undefined> {
  return (await store.registry.get(agentId))?.lastSeenMs;
}

/** Time passes with sweeps as often as they should be. */
async function sweepFor(node: LivenessNode, seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 60) {
    await letPass(60);
    await node.service.sweep();
  }
}

describe('heartbeats', () => {
  it('are visible at once where they are answered, grow, and reach the database', async () => {
    const { lastSeenMs } = await registerAgent(store.registry, 'echo-01');
    await using node = await startLivenessNode({ bus, store: store.liveness });
    const replies: number[] = [];
    for (let beat = 0; beat < 20; beat += 1) {
      const reply = await node.client.heartbeat('echo-01');
      expect(node.directory.get('echo-01')?.lastSeenMs).toBe(reply.lastSeenMs);
      replies.push(reply.lastSeenMs);
    }
    expect(replies).toEqual([...new Set(replies)].toSorted((a, b) => a - b));
    expect(replies[0]).toBeGreaterThan(lastSeenMs);
    expect(Math.abs((replies.at(-1) ?? 0) - (await store.liveness.databaseTimeMs()))).toBeLessThan(1_000);
    await eventually(async () => (await storedMs('echo-01')) === replies.at(-1), { what: 'the beat in the database' });
  });

  it('reach the other nodes within a second or so', async () => {
    await registerAgent(store.registry, 'echo-01');
    await using node = await startLivenessNode({ bus, store: store.liveness });
    await using other = await startLivenessNode({ bus, store: store.liveness, nodeId: 'node-b' });
    const { lastSeenMs } = await node.client.heartbeat('echo-01');
    await eventually(
      () => [node, other].every(({ directory }) => directory.get('echo-01')?.lastSeenMs === lastSeenMs),
      { withinMs: 2_000, what: 'the beat on both nodes' },
    );
  });

  it('of agents that the registry does not know are refused', async () => {
    await using node = await startLivenessNode({ bus, store: store.liveness });
    for (const agentId of ['nobody', 'Not An Id', '']) {
      await expect(node.client.heartbeat(agentId)).rejects.toMatchObject({
        code: 'agent_not_found',
        message: 'agent not found',
      });
    }
  });

  it('of an agent that the directory does not know yet are taken', async () => {
    await using node = await startLivenessNode({ bus, store: store.liveness });
    await registerAgent(store.registry, 'late-01');
    const first = await node.client.heartbeat('late-01');
    const second = await node.client.heartbeat('late-01');
    expect(second.lastSeenMs).toBeGreaterThan(first.lastSeenMs);
    expect(node.directory.get('late-01')).toBeUndefined();
    await node.service.flush();
    expect(await storedMs('late-01')).toBe(second.lastSeenMs);
  });

  it('are written before the service ends, and refused afterwards', async () => {
    await registerAgent(store.registry, 'echo-01');
    const node = await startLivenessNode({ bus, store: store.liveness });
    const { lastSeenMs } = await node.client.heartbeat('echo-01');
    await node[Symbol.asyncDispose]();
    expect(await storedMs('echo-01')).toBe(lastSeenMs);
    await expect(node.client.heartbeat('echo-01')).rejects.toMatchObject({ code: 'no_dispatcher' });
  });

  it('go on from memory while the database is away, and none is lost', async () => {
    await using server = await startPostgres();
    await using ownBus = Object.assign(new MemoryBus(), { [Symbol.asyncDispose]: () => Promise.resolve() });
    const own = await openStore({ kind: 'postgres', url: server.url, logger: silentLogger() });
    try {
      serveLookups(ownBus, own.registry);
      await registerAgent(own.registry, 'echo-01');
      await using node = await startLivenessNode({ bus: ownBus, store: own.liveness });
      await server.kill();
      await node.client.heartbeat('echo-01');
      await expect(node.service.flush()).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(await node.service.sweep()).toMatchObject({ kind: 'skipped' });
      const { lastSeenMs } = await node.client.heartbeat('echo-01');
      expect(node.directory.get('echo-01')?.lastSeenMs).toBe(lastSeenMs);
      await server.start();
      const isStored = async (): Promise<boolean> => (await own.registry.get('echo-01'))?.lastSeenMs === lastSeenMs;
      await eventually(isStored, { withinMs: 20_000, what: 'the beat in the database' });
    } finally {
      await ownBus.close();
      await own.close();
    }
  });
});

describe('expiry', () => {
  it('removes who is silent for longer than the TTL, and keeps who beats', async () => {
    await registerAgent(store.registry, 'silent-01');
    await registerAgent(store.registry, 'beating-01');
    await using node = await startLivenessNode({ bus, store: store.liveness });
    await using other = await startLivenessNode({ bus, store: store.liveness, nodeId: 'node-b' });
    const expired: string[] = [];
    bus.subscribe('patchbay.events.expired.*', ({ subject }) => void expired.push(subject));
    const removed: string[] = [];
    node.directory.onChange((change) => {
      if (change.kind === 'removed') removed.push(`${change.agent.record.agentId} ${change.reason}`);
    });
    await node.service.sweep();
    await sweepFor(node, TTL_SECONDS - 60);
    expect(node.directory.size).toBe(2);
    await node.client.heartbeat('beating-01');
    await sweepFor(node, 120);
    expect(removed).toEqual(['silent-01 expired']);
    expect(await store.registry.get('silent-01')).toBeNull();
    await bus.flush();
    expect(expired).toEqual([subjects.event('expired', 'silent-01')]);
    await eventually(() => other.directory.get('silent-01') === undefined);
    expect(other.directory.get('beating-01')).toBeDefined();
    await expect(node.client.heartbeat('silent-01')).rejects.toMatchObject({ code: 'agent_not_found' });
  });

  it('never happens with a TTL of 0', async () => {
    await registerAgent(store.registry, 'silent-01');
    await using node = await startLivenessNode({ bus, store: store.liveness, ttlSeconds: 0 });
    await letPass(1_000_000);
    expect(await node.service.sweep()).toMatchObject({ kind: 'skipped' });
    expect(await store.registry.get('silent-01')).not.toBeNull();
  });

  it('happens by itself, every interval', async () => {
    await registerAgent(store.registry, 'silent-01');
    await registerAgent(store.registry, 'beating-01');
    await using node = await startLivenessNode({
      bus,
      store: store.liveness,
      ttlSeconds: 2,
      sweepIntervalSeconds: 0.5,
    });
    const isSilentGone = async (): Promise<boolean> => {
      await node.client.heartbeat('beating-01');
      return node.directory.get('silent-01') === undefined;
    };
    await eventually(isSilentGone, { withinMs: 20_000, everyMs: 50, what: 'the expiry' });
    expect(node.directory.get('beating-01')).toBeDefined();
  });

  it('waits for the beats that another node still holds', async () => {
    await registerAgent(store.registry, 'echo-01');
    await using node = await startLivenessNode({ bus, store: store.liveness });
    await using other = await startLivenessNode({ bus, store: store.liveness, nodeId: 'node-b' });
    await eventually(() => node.membership.members().length === 2);
    await node.service.sweep();
    await sweepFor(node, TTL_SECONDS - 60);
    await letPass(90);
    // One on each node: the queue group takes turns.
    const beats = [await node.client.heartbeat('echo-01'), await node.client.heartbeat('echo-01')];
    expect(await node.service.sweep()).toEqual({ kind: 'swept', expired: [] });
    expect(await storedMs('echo-01')).toBe(Math.max(...beats.map((beat) => beat.lastSeenMs)));
    expect(other.directory.get('echo-01')).toBeDefined();
  });

  it('does not happen when another node cannot say what it heard', async () => {
    await registerAgent(store.registry, 'silent-01');
    await using node = await startLivenessNode({ bus, store: store.liveness });
    await node.service.sweep();
    await sweepFor(node, TTL_SECONDS - 60);
    const beat = { ...node.membership.members()[0]?.beat, node_id: 'node-b' };
    bus.publish(subjects.node('node-b'), Buffer.from(JSON.stringify(beat)));
    await bus.flush();
    await letPass(90);
    expect(await node.service.sweep()).toEqual({
      kind: 'skipped',
      why: 'not written: the heartbeats held by node-b',
    });
    expect(await store.registry.get('silent-01')).not.toBeNull();
  });
});

describe('nobody expires because we were away', () => {
  it('everything was down for an hour: one TTL of grace from the moment we hear again', async () => {
    await registerAgent(store.registry, 'silent-01');
    await registerAgent(store.registry, 'beating-01');
    const before = await startLivenessNode({ bus, store: store.liveness });
    await before.service.sweep();
    await before[Symbol.asyncDispose]();
    await letPass(3_600);
    await using node = await startLivenessNode({ bus, store: store.liveness, clock: new ManualClock(Date.now()) });
    expect(await node.service.sweep()).toMatchObject({ kind: 'grace' });
    await sweepFor(node, TTL_SECONDS - 60);
    expect(node.directory.size).toBe(2);
    await node.client.heartbeat('beating-01');
    await sweepFor(node, 120);
    expect(node.directory.list().map(({ record }) => record.agentId)).toEqual(['beating-01']);
  });

  it('the bus was away: the time is added to the TTL', async () => {
    const breakable = new BreakableBus(bus);
    const clock = new ManualClock(Date.now());
    await registerAgent(store.registry, 'echo-01');
    await using node = await startLivenessNode({ bus: breakable, store: store.liveness, clock });
    await node.service.sweep();
    await sweepFor(node, TTL_SECONDS - 60);
    breakable.set(false);
    clock.advance(90_000);
    await letPass(90);
    expect(await node.service.sweep()).toEqual({ kind: 'skipped', why: 'the bus is down' });
    breakable.set(true);
    clock.advance(5_000);
    await letPass(5);
    // Silent for 335 s, of which 90 could not be heard.
    expect(await node.service.sweep()).toEqual({ kind: 'swept', expired: [] });
    await sweepFor(node, 120);
    expect(node.directory.size, 'silent for 455 s').toBe(0);
  });
});
