import { MemoryBus, Subjects } from '@patchbay/bus';
import { ManualClock, PatchbayError } from '@patchbay/core';
import { decodeBody } from '@patchbay/service-api';
import type { BeatBatch } from '@patchbay/service-api';
import type { Beat } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BeatBook } from './beat-book.js';
import { BeatWriter } from './beat-writer.js';
import { DatabaseClock } from './database-clock.js';
import { DeafTimes } from './deaf-times.js';

const subjects = new Subjects();

/** A database whose answers are given by hand. */
class FakeStore {
  readonly written: (readonly Beat[])[] = [];
  isDown = false;
  release = (): void => {};
  #gate: Promise<void> | undefined;

  /** Lets writes wait for `release()`. */
  hold(): void {
    this.#gate = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  async recordBeats(beats: readonly Beat[]): Promise<number> {
    await this.#gate;
    if (this.isDown) throw new PatchbayError('store_unavailable', 'the database is away');
    if (beats.length > 0) this.written.push(beats);
    return 1_000_000;
  }
}

let bus: MemoryBus;
let clock: ManualClock;
let store: FakeStore;
let book: BeatBook;
let deafTimes: DeafTimes;
let writer: BeatWriter;
let told: BeatBatch[];
let touched: string[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  bus = new MemoryBus();
  clock = new ManualClock();
  store = new FakeStore();
  book = new BeatBook();
  deafTimes = new DeafTimes(clock);
  told = [];
  touched = [];
  bus.subscribe(subjects.beats('*'), ({ body }) => void told.push(decodeBody<BeatBatch>(body)));
  writer = new BeatWriter({
    bus,
    subjects,
    store,
    directory: { touch: (agentId) => touched.push(agentId) },
    nodeId: 'me',
    clock,
    logger: silentLogger(),
    book,
    databaseClock: new DatabaseClock(clock),
    deafTimes,
  });
  await settle();
});

afterEach(async () => {
  writer.stop();
  await bus.close();
  vi.useRealTimers();
});

async function settle(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

async function second(): Promise<void> {
  clock.advance(1_000);
  await vi.advanceTimersByTimeAsync(1_000);
  await settle();
}

describe('BeatWriter', () => {
  it('writes and tells once a second, the newest beat of each agent', async () => {
    book.note({ agentId: 'a1', lastSeenMs: 1 });
    book.note({ agentId: 'a1', lastSeenMs: 3 });
    book.note({ agentId: 'a1', lastSeenMs: 2 });
    book.note({ agentId: 'b1', lastSeenMs: 2 });
    expect(store.written).toEqual([]);
    await second();
    const beats = [
      { agentId: 'a1', lastSeenMs: 3 },
      { agentId: 'b1', lastSeenMs: 2 },
    ];
    expect(store.written).toEqual([beats]);
    expect(told).toEqual([{ nodeId: 'me', beats }]);
    expect(touched).toEqual(['a1', 'b1']);
    await second();
    expect(store.written).toHaveLength(1);
    expect(told).toHaveLength(1);
  });

  it('tells of many in several messages', async () => {
    for (let index = 0; index < 4_500; index += 1) book.note({ agentId: `agent-${index}`, lastSeenMs: 1 });
    await second();
    expect(told.map((batch) => batch.beats.length)).toEqual([2_000, 2_000, 500]);
  });

  it('keeps beats while the database is away, and is deaf meanwhile', async () => {
    store.isDown = true;
    for (let at = 1; at <= 10; at += 1) {
      book.note({ agentId: 'a1', lastSeenMs: at });
      await second();
    }
    expect(book.unwritten).toBe(1);
    expect(told).toHaveLength(10);
    expect(deafTimes.withinMs(300_000)).toBe(9_000);
    store.isDown = false;
    await second();
    expect(store.written).toEqual([[{ agentId: 'a1', lastSeenMs: 10 }]]);
    expect(book.unwritten).toBe(0);
  });

  it('flushes what came while a write was in hand', async () => {
    store.hold();
    book.note({ agentId: 'a1', lastSeenMs: 1 });
    await second();
    book.note({ agentId: 'b1', lastSeenMs: 1 });
    const flushed = Promise.all([writer.flush(), writer.flush()]);
    store.release();
    await flushed;
    expect(store.written.flat().map((beat) => beat.agentId)).toEqual(['a1', 'b1']);
  });

  it('says when a flush failed, and keeps the beats', async () => {
    store.isDown = true;
    book.note({ agentId: 'a1', lastSeenMs: 1 });
    await expect(writer.flush()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(book.unwrittenOf('a1')).toBe(1);
  });

  it('notices that the process stood still', async () => {
    clock.advance(60_000);
    await second();
    expect(deafTimes.withinMs(300_000)).toBe(60_000);
  });
});
