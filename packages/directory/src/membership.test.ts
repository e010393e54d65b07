import { MemoryBus, Subjects } from '@patchbay/bus';
import { ManualClock } from '@patchbay/core';
import { encodeBody } from '@patchbay/service-api';
import { silentLogger } from '@patchbay/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Directory } from './directory.js';
import { Membership } from './membership.js';
import { isDispatching } from './node-beat.js';
import type { NodeBeat } from './node-beat.js';

const subjects = new Subjects();
let bus: MemoryBus;
let clock: ManualClock;
let started: Membership[];
let conflicts: string[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  bus = new MemoryBus();
  clock = new ManualClock();
  started = [];
  conflicts = [];
});

afterEach(async () => {
  await Promise.all(started.map((membership) => membership.stop()));
  await bus.close();
  vi.useRealTimers();
});

function join(nodeId: string, directory = new Directory()): Membership {
  const membership = new Membership({
    bus,
    subjects,
    directory,
    nodeId,
    version: '0.1.0',
    services: ['registry'],
    logger: silentLogger(),
    onConflict: (other) => conflicts.push(`${nodeId} against ${other.incarnation}`),
    clock,
  });
  started.push(membership);
  membership.start();
  return membership;
}

/** Lets both the clock and the timers go on, and everything that was published arrive. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    clock.advance(500);
    await vi.advanceTimersByTimeAsync(500);
    await bus.flush();
  }
}

function names(membership: Membership): string[] {
  return membership.members().map(({ beat, isSuspect }) => (isSuspect ? `${beat.node_id}?` : beat.node_id));
}

function beat(nodeId: string, change: Partial<NodeBeat> = {}): NodeBeat {
  return {
    v: 1,
    node_id: nodeId,
    incarnation: '01B',
    version: '0.1.0',
    services: [],
    applied_revision: 0,
    epoch: 0,
    draining: false,
    free_slots: 0,
    bus: true,
    store: true,
    ...change,
  };
}

async function hear(said: NodeBeat): Promise<void> {
  bus.publish(subjects.node(said.node_id), encodeBody(said));
  await bus.flush();
}

describe('Membership', () => {
  it('is a member itself at once, and finds the others within a second', async () => {
    const a = join('a');
    expect(names(a)).toEqual(['a']);
    const b = join('b');
    await pass(1_000);
    expect(names(a)).toEqual(['a', 'b']);
    expect(names(b)).toEqual(['b', 'a']);
    await pass(10_000);
    expect(names(a)).toEqual(['a', 'b']);
  });

  it('says what it is every second', async () => {
    const said: NodeBeat[] = [];
    bus.subscribe(
      subjects.node('*'),
      ({ body }) => void said.push(JSON.parse(Buffer.from(body).toString()) as NodeBeat),
    );
    const directory = new Directory();
    const a = join('a', directory);
    await pass(3_000);
    expect(said).toHaveLength(4);
    directory.replaceAll([], 7);
    a.report({ draining: true, free_slots: 3 });
    await bus.flush();
    expect(said).toHaveLength(5);
    expect(said.at(-1)).toMatchObject({
      v: 1,
      node_id: 'a',
      version: '0.1.0',
      services: ['registry'],
      applied_revision: 7,
      draining: true,
      free_slots: 3,
      bus: true,
      store: true,
    });
  });

  it('suspects a silent node after 2 s and drops it after 3 s', async () => {
    const a = join('a');
    const changes: string[][] = [];
    a.onChange(() => changes.push(names(a)));
    await hear(beat('b'));
    await pass(1_500);
    expect(names(a)).toEqual(['a', 'b']);
    await pass(500);
    expect(names(a)).toEqual(['a', 'b?']);
    await pass(1_000);
    expect(names(a)).toEqual(['a']);
    expect(changes).toEqual([['a', 'b'], ['a', 'b?'], ['a']]);
  });

  it('takes a suspect back when it is heard again', async () => {
    const a = join('a');
    await hear(beat('b'));
    await pass(2_000);
    await hear(beat('b'));
    expect(names(a)).toEqual(['a', 'b']);
  });

  it('does not blame the others for the time in which this process stood still', async () => {
    const a = join('a');
    await hear(beat('b'));
    await pass(1_000);
    clock.advance(60_000);
    await pass(500);
    expect(names(a)).toEqual(['a', 'b']);
    await pass(2_000);
    expect(names(a)).toEqual(['a']);
  });

  it('counts the silence of a node that was heard right after a standstill from then on', async () => {
    const a = join('a');
    await hear(beat('b'));
    await pass(1_000);
    clock.advance(60_000);
    await hear(beat('b'));
    await pass(3_000);
    expect(names(a)).toEqual(['a', 'b?']);
    await pass(500);
    expect(names(a)).toEqual(['a']);
  });

  it('tells when a node begins and ends to dispatch', async () => {
    const a = join('a');
    const changes: number[] = [];
    a.onChange(() => changes.push(a.members().filter(({ beat: said }) => isDispatching(said)).length));
    const services = ['dispatch'];
    await hear(beat('b', { services }));
    await hear(beat('b', { services, epoch: 7 }));
    await hear(beat('b', { services, epoch: 8 }));
    await hear(beat('b', { services, epoch: 0 }));
    expect(changes).toEqual([0, 1, 0]);
  });

  it('ticks twice a second before it beats, and says a new epoch at once', async () => {
    const said: NodeBeat[] = [];
    bus.subscribe(
      subjects.node('*'),
      ({ body }) => void said.push(JSON.parse(Buffer.from(body).toString()) as NodeBeat),
    );
    const a = join('a');
    let ticks = 0;
    const stop = a.onTick(() => a.report({ free_slots: ++ticks }));
    await pass(2_000);
    expect(ticks).toBe(4);
    expect(said.map(({ free_slots }) => free_slots)).toEqual([0, 2, 4]);
    a.report({ epoch: 5, rejoins: 1 });
    await bus.flush();
    expect(said.at(-1)).toMatchObject({ epoch: 5, rejoins: 1 });
    stop();
    await pass(1_000);
    expect(ticks).toBe(4);
  });

  it('follows a restart and ignores beats of the run before', async () => {
    const a = join('a');
    const beats: number[] = [];
    a.onBeat((heard) => beats.push(heard.applied_revision));
    await hear(beat('b', { incarnation: '01A', applied_revision: 5 }));
    await hear(beat('b', { incarnation: '01B', applied_revision: 0 }));
    await hear(beat('b', { incarnation: '01A', applied_revision: 6 }));
    expect(beats).toEqual([5, 0]);
    expect(a.members()[1]?.beat.incarnation).toBe('01B');
  });

  it('of two nodes with one id tells the later one alone, once', async () => {
    const first = join('same');
    await pass(1_000);
    join('same');
    await pass(3_000);
    expect(conflicts).toHaveLength(1);
    expect(names(first)).toEqual(['same']);
  });

  it('is silent once stopped', async () => {
    const a = join('a');
    const b = join('b');
    await pass(1_000);
    await b.stop();
    await pass(4_000);
    expect(names(a)).toEqual(['a']);
  });
});
