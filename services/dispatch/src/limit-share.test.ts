import { Subjects } from '@patchbay/bus';
import type { Delivery, Handler } from '@patchbay/bus';
import { ManualClock } from '@patchbay/core';
import { Directory, Membership } from '@patchbay/directory';
import { silentLogger } from '@patchbay/telemetry';
import { array, assert, boolean, constantFrom, integer, property, record } from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LimitShare } from './limit-share.js';
import { shareAt } from './share-epoch.js';

const STEP_MS = 50;
const TICK_MS = 500;
const SETTLE_MS = 1_500;
const MAX_DELAY_MS = 300;
const subjects = new Subjects();

/** What `setInterval` was last asked to call. */
let lastInterval: () => void = () => undefined;

beforeEach(() => {
  // Each simulated process ticks when the simulation says so: a process that stands still has timers that do too.
  vi.stubGlobal('setInterval', (callback: () => void) => {
    lastInterval = callback;
    const timer = { unref: () => timer };
    return timer;
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

interface Letter {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly dueMs: number;
}

/** One process: the real membership and share, with ticks and messages in the hands of the simulation. */
class SimulatedNode {
  readonly id: string;
  readonly membership: Membership;
  readonly inbox: Letter[] = [];
  share: LimitShare | undefined;
  stalledUntilMs = 0;
  nextTickMs: number;
  readonly tick: () => void;
  #handler: Handler | undefined;

  constructor(id: string, sim: Simulation) {
    this.id = id;
    this.membership = new Membership({
      bus: {
        isUp: true,
        publish: (subject, body) => sim.send(this, subject, body),
        subscribe: (subject, handler) => {
          this.#handler = handler;
          return { subject, drain: () => Promise.resolve() };
        },
      },
      subjects,
      directory: new Directory(),
      nodeId: id,
      version: '0.1.0',
      services: ['dispatch'],
      logger: silentLogger(),
      onConflict: () => undefined,
      clock: sim.clock,
    });
    this.membership.start();
    this.tick = lastInterval;
    this.nextTickMs = sim.clock.monotonicMs() + TICK_MS;
  }

  receive({ subject, body }: Letter): void {
    const delivery: Delivery = { subject, body, headers: {}, exchange: undefined };
    void this.#handler?.(delivery);
  }

  sees(other: SimulatedNode): boolean {
    return this.membership.members().some(({ beat }) => beat.node_id === other.id);
  }
}

/** Nodes, and a network that delays each pair's messages without changing their order. */
class Simulation {
  readonly clock = new ManualClock();
  readonly nodes: SimulatedNode[] = [];
  /** Nodes in different parts do not hear each other. */
  readonly parts = new Map<string, number>();
  readonly #limit: number;
  readonly #check: () => void;
  #seed: number;

  /** @param check Called whenever a call could come to a node. */
  constructor(limit: number, seed: number, check: () => void) {
    this.#limit = limit;
    this.#seed = seed;
    this.#check = check;
  }

  /** A number in [0, 1); the same ones for the same seed. */
  random(): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#seed / 0x1_0000_0000;
  }

  send(from: SimulatedNode, subject: string, body: Uint8Array): void {
    for (const to of this.nodes) {
      if (this.parts.get(to.id) !== this.parts.get(from.id)) continue;
      const dueMs = this.clock.monotonicMs() + this.random() * MAX_DELAY_MS;
      const before = to.inbox.findLast((letter) => letter.subject === subject);
      to.inbox.push({ subject, body, dueMs: Math.max(dueMs, before?.dueMs ?? 0) });
    }
  }

  /** A process starts; it dispatches later. */
  start(): void {
    const id = `${'abcdefgh'[Math.floor(this.random() * 8)] ?? ''}${this.nodes.length}-${Math.floor(this.random() * 1e6)}`;
    const node = new SimulatedNode(id, this);
    this.nodes.push(node);
  }

  dispatch(node: SimulatedNode): void {
    const { membership } = node;
    node.share ??= new LimitShare({ membership, limit: this.#limit, settleMs: SETTLE_MS, clock: this.clock });
  }

  kill(node: SimulatedNode): void {
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }

  leave(node: SimulatedNode): void {
    node.share?.leave();
    this.kill(node);
  }

  /** Lets time go on; every running process hears what has arrived, and ticks, in either order. */
  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(STEP_MS);
      const nowMs = this.clock.monotonicMs();
      for (const node of this.nodes) {
        if (node.stalledUntilMs > nowMs) continue;
        // A call may come before anything else, above all to a process that has stood still.
        this.#check();
        const ticksFirst = this.random() < 0.5;
        if (ticksFirst) this.#tick(node, nowMs);
        for (const letter of node.inbox.splice(0)) {
          if (letter.dueMs > nowMs) node.inbox.push(letter);
          else node.receive(letter);
          this.#check();
        }
        if (!ticksFirst) this.#tick(node, nowMs);
        this.#check();
      }
    }
  }

  /** Slots that running nodes would grant to calls of one agent now. */
  total(nodes: readonly SimulatedNode[] = this.running()): number {
    return nodes.reduce((sum, node) => sum + (node.share?.size ?? 0), 0);
  }

  running(): SimulatedNode[] {
    return this.nodes.filter((node) => node.stalledUntilMs <= this.clock.monotonicMs());
  }

  /** Whether every running node sees every other. */
  isWhole(): boolean {
    const running = this.running();
    return running.every((node) => running.every((other) => node.sees(other)));
  }

  #tick(node: SimulatedNode, nowMs: number): void {
    if (node.nextTickMs > nowMs) return;
    node.nextTickMs = nowMs + TICK_MS;
    node.tick();
  }
}

/** What happens to which node (counted round) before time goes on by `thenMs`. */
const happening = (...kinds: ('start' | 'kill' | 'leave' | 'stall' | 'part' | 'heal')[]) =>
  record({
    kind: constantFrom(...kinds),
    index: integer({ min: 0, max: 7 }),
    stallMs: integer({ min: 0, max: 8_000 }),
    thenMs: integer({ min: 0, max: 5_000 }),
    dispatchesAtOnce: boolean(),
  });

interface Happening {
  readonly kind: 'start' | 'kill' | 'leave' | 'stall' | 'part' | 'heal';
  readonly index: number;
  readonly stallMs: number;
  readonly thenMs: number;
  readonly dispatchesAtOnce: boolean;
}

function carryOut(sim: Simulation, { kind, index, stallMs, thenMs, dispatchesAtOnce }: Happening): void {
  const node = sim.nodes[index % Math.max(1, sim.nodes.length)];
  if (kind === 'start' && sim.nodes.length < 6) sim.start();
  else if (kind === 'heal') sim.parts.clear();
  else if (node !== undefined) {
    if (kind === 'kill') sim.kill(node);
    else if (kind === 'leave') sim.leave(node);
    else if (kind === 'stall') node.stalledUntilMs = sim.clock.monotonicMs() + stallMs;
    else if (kind === 'part') sim.parts.set(node.id, (sim.parts.get(node.id) ?? 0) + 1);
  }
  if (!dispatchesAtOnce) sim.pass(2_000);
  for (const started of sim.nodes) sim.dispatch(started);
  sim.pass(thenMs);
}

/** A cluster that has agreed. */
function settled(limit: number, seed: number, size: number, check: (sim: Simulation) => void): Simulation {
  const sim: Simulation = new Simulation(limit, seed, () => check(sim));
  for (let count = 0; count < size; count += 1) sim.start();
  for (const node of sim.nodes) sim.dispatch(node);
  sim.pass(3_000);
  return sim;
}

/** After a calm while everybody has the share of its place, and together they have the limit. */
function expectFairShares(sim: Simulation, limit: number): void {
  sim.parts.clear();
  for (const node of sim.nodes) {
    node.stalledUntilMs = 0;
    sim.dispatch(node);
  }
  sim.pass(8_000);
  const sorted = sim.nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  expect(sorted.map(({ share }) => share?.size)).toEqual(sorted.map((_, at) => shareAt(limit, at, sorted.length)));
}

const limits = integer({ min: 1, max: 120 });
const seeds = integer({ min: 0, max: 0xffff_ffff });
const withinLimit = (limit: number) => (sim: Simulation) => expect(sim.total()).toBeLessThanOrEqual(limit);

describe('LimitShare', () => {
  it('is the whole limit at once where nobody else can be', () => {
    const sim = new Simulation(10, 1, () => undefined);
    const { membership } = new SimulatedNode('only', sim);
    const share = new LimitShare({ membership, limit: 10, settleMs: 0, clock: sim.clock });
    expect([share.size, share.isReady]).toEqual([10, true]);
    sim.clock.advance(60_000);
    expect(share.size).toBe(10);
  });

  it('is the whole limit for the first node within two seconds', () => {
    const sim = new Simulation(10, 1, () => undefined);
    sim.start();
    for (const node of sim.nodes) sim.dispatch(node);
    expect([sim.total(), sim.nodes[0]?.share?.isReady]).toEqual([0, false]);
    sim.pass(2_000);
    expect([sim.total(), sim.nodes[0]?.share?.isReady]).toEqual([10, true]);
  });

  it('shrinks and grows as nodes come and go', () => {
    const sim = settled(10, 1, 2, withinLimit(10));
    const sizes = (): number[] => sim.nodes.map(({ share }) => share?.size ?? 0).toSorted((a, b) => a - b);
    expect(sizes()).toEqual([5, 5]);
    sim.start();
    sim.pass(SETTLE_MS);
    expect(sizes()).toEqual([0, 5, 5]);
    for (const node of sim.nodes) sim.dispatch(node);
    sim.pass(1_500);
    expect(sizes()).toEqual([3, 3, 4]);
    const [leaving] = sim.nodes;
    if (leaving !== undefined) sim.leave(leaving);
    sim.pass(1_000);
    expect(sizes()).toEqual([5, 5]);
    const [dying] = sim.nodes;
    if (dying !== undefined) sim.kill(dying);
    sim.pass(2_000);
    expect(sizes()).toEqual([5]);
    sim.pass(2_500);
    expect(sizes()).toEqual([10]);
  });

  it('together never exceed the limit while nodes come, go and die', () => {
    assert(
      property(
        limits,
        seeds,
        array(happening('start', 'start', 'kill', 'leave'), { maxLength: 16 }),
        (limit, seed, happenings) => {
          const sim: Simulation = new Simulation(limit, seed, () => withinLimit(limit)(sim));
          sim.start();
          for (const next of happenings) carryOut(sim, next);
          expectFairShares(sim, limit);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('together never exceed the limit while one after the other stands still and goes on', () => {
    assert(
      property(
        limits,
        seeds,
        integer({ min: 2, max: 5 }),
        array(happening('stall'), { maxLength: 12 }),
        (limit, seed, size, happenings) => {
          const sim = settled(limit, seed, size, withinLimit(limit));
          for (const next of happenings) {
            carryOut(sim, next);
            sim.pass(next.stallMs + 1_500);
          }
          expectFairShares(sim, limit);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('together never exceed the limit among nodes that see each other, whatever happens', () => {
    assert(
      property(
        limits,
        seeds,
        array(happening('start', 'start', 'kill', 'leave', 'stall', 'part', 'heal'), { maxLength: 16 }),
        (limit, seed, happenings) => {
          const sim = settled(limit, seed, 3, (now) => {
            const seen = now.total();
            if (now.isWhole()) expect(seen).toBeLessThanOrEqual(limit);
          });
          for (const next of happenings) carryOut(sim, next);
          expectFairShares(sim, limit);
        },
      ),
      { numRuns: 40 },
    );
  });
});
