import type { RegistryEvent } from '@patchbay/agent-card';
import { ManualClock, PatchbayError } from '@patchbay/core';
import type { Member } from '@patchbay/directory';
import type { SweepOptions, SweepOutcome } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Sweeper } from './sweeper.js';

const EXPIRED: RegistryEvent = {
  v: 1,
  revision: 7,
  kind: 'deregistered',
  agentId: 'gone-01',
  agent: null,
  atMs: 0,
  nodeId: 'me',
  reason: 'expired',
};

let isBusUp: boolean;
let busListeners: Set<(isUp: boolean) => void>;
let clock: ManualClock;
let members: Member[];
let flushed: string[];
let silent: Set<string>;
let sweeps: SweepOptions[];
let outcome: SweepOutcome;
let expired: string[];
let deafMs: number;
let sweeper: Sweeper;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  isBusUp = true;
  busListeners = new Set();
  clock = new ManualClock();
  clock.advance(100_000);
  members = [memberOf('me')];
  flushed = [];
  silent = new Set();
  sweeps = [];
  outcome = { kind: 'swept', expired: [] };
  expired = [];
  deafMs = 0;
  sweeper = new Sweeper({
    bus: {
      get isUp() {
        return isBusUp;
      },
      onStatus: (listener) => {
        busListeners.add(listener);
        return () => busListeners.delete(listener);
      },
    },
    store: {
      sweep: (options) => {
        sweeps.push(options);
        return Promise.resolve(outcome);
      },
    },
    membership: { nodeId: 'me', members: () => members },
    liveness: { flushBeats: flush },
    beats: { flush: () => flush('own') },
    deafTimes: { withinMs: () => deafMs },
    ttlMs: 300_000,
    intervalMs: 60_000,
    clock,
    logger: silentLogger(),
    onExpired: (events) => expired.push(...events.map((event) => event.agentId)),
  });
});

afterEach(async () => {
  await sweeper.stop();
  vi.useRealTimers();
});

function flush(nodeId: string): Promise<void> {
  flushed.push(nodeId);
  if (silent.has(nodeId)) return Promise.reject(new PatchbayError('deadline_exceeded', 'no answer'));
  return Promise.resolve();
}

function memberOf(nodeId: string, options: { services?: string[]; isSuspect?: boolean } = {}): Member {
  const { services = ['liveness'], isSuspect = false } = options;
  const beat = {
    v: 1 as const,
    node_id: nodeId,
    incarnation: '1',
    version: '0',
    services,
    applied_revision: 0,
    epoch: 0,
    draining: false,
    free_slots: 0,
    bus: true,
    store: true,
  };
  return { beat, isSuspect };
}

function setBus(isUp: boolean): void {
  isBusUp = isUp;
  for (const listener of busListeners) listener(isUp);
}

describe('Sweeper', () => {
  it('sweeps every interval, and tells of whoever expired', async () => {
    outcome = { kind: 'swept', expired: [EXPIRED] };
    deafMs = 12_000;
    await vi.advanceTimersByTimeAsync(59_999);
    expect(sweeps).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sweeps).toEqual([{ nodeId: 'me', ttlMs: 300_000, intervalMs: 60_000, deafMs: 12_000 }]);
    expect(expired).toEqual(['gone-01']);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sweeps).toHaveLength(2);
  });

  it('has every node that answers heartbeats write its beats first, suspects too', async () => {
    members.push(memberOf('b'), memberOf('front', { services: ['gateway'] }), memberOf('c', { isSuspect: true }));
    expect((await sweeper.sweep()).kind).toBe('swept');
    expect(flushed).toEqual(['own', 'b', 'c']);
  });

  it('does not sweep when a node did not write its beats, and tries again after 5 s', async () => {
    members.push(memberOf('b'), memberOf('c'));
    silent.add('c');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sweeps).toEqual([]);
    expect(await sweeper.sweep()).toEqual({ kind: 'skipped', why: 'not written: the heartbeats held by c' });
    silent.clear();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(sweeps).toHaveLength(1);
  });

  it('does not sweep when its own beats cannot be written, nor while the bus is down or has just come back', async () => {
    silent.add('own');
    expect(await sweeper.sweep()).toEqual({ kind: 'skipped', why: 'no answer' });
    silent.clear();
    setBus(false);
    expect(await sweeper.sweep()).toEqual({ kind: 'skipped', why: 'the bus is down' });
    setBus(true);
    clock.advance(2_999);
    expect(await sweeper.sweep()).toEqual({ kind: 'skipped', why: 'the bus has only just come back' });
    expect(sweeps).toEqual([]);
    clock.advance(1);
    expect((await sweeper.sweep()).kind).toBe('swept');
  });

  it('tells of nobody when another node sweeps or sweeps were missed', async () => {
    outcome = { kind: 'busy' };
    expect(await sweeper.sweep()).toEqual(outcome);
    outcome = { kind: 'grace', untilMs: 5 };
    expect(await sweeper.sweep()).toEqual(outcome);
    expect(expired).toEqual([]);
  });

  it('stops', async () => {
    await sweeper.stop();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(sweeps).toEqual([]);
    expect(busListeners.size).toBe(0);
  });
});
