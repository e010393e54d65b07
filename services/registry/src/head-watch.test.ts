import { PatchbayError } from '@patchbay/core';
import type { RegistryHead, RegistryStore } from '@patchbay/store';
import { silentLogger } from '@patchbay/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HeadWatch } from './head-watch.js';

let head: RegistryHead;
let isDown: boolean;
let log: string[];
let watch: HeadWatch;

function unused(): never {
  throw new Error('only the head is expected to be read');
}

const store: RegistryStore = {
  write: unused,
  get: unused,
  eventsAfter: unused,
  snapshot: unused,
  head: () => {
    if (isDown) return Promise.reject(new PatchbayError('store_unavailable', 'the database is away'));
    return Promise.resolve(head);
  },
  prune: (keepRevisions) => {
    log.push(`prune ${keepRevisions}`);
    return Promise.resolve();
  },
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  head = { revision: 7, agentCount: 1, prunedTo: 0 };
  isDown = false;
  log = [];
  watch = new HeadWatch({
    store,
    replica: { noticeHead: (revision) => log.push(`head ${revision}`) },
    membership: { report: (change) => log.push(`store ${change.store === true ? 'up' : 'down'}`) },
    announcer: {
      settleUnknown: () => {
        log.push('settle');
        return Promise.resolve();
      },
    },
    logger: silentLogger(),
  });
});

afterEach(async () => {
  await watch.stop();
  vi.useRealTimers();
});

describe('HeadWatch', () => {
  it('looks every 2 s, first at what is unsettled', async () => {
    await vi.advanceTimersByTimeAsync(1_999);
    expect(log).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(log).toEqual(['settle', 'head 7']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(log).toHaveLength(4);
  });

  it('looks at once when asked, again when a look was in hand', async () => {
    watch.lookNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(log).toHaveLength(2);
    watch.lookNow();
    vi.advanceTimersByTime(0);
    watch.lookNow();
    await vi.advanceTimersByTimeAsync(0);
    await vi.advanceTimersByTimeAsync(0);
    expect(log).toHaveLength(6);
  });

  it('prunes when enough has gathered', async () => {
    head = { revision: 105_001, agentCount: 1, prunedTo: 1 };
    await vi.advanceTimersByTimeAsync(2_000);
    expect(log).not.toContain('prune 100000');
    head = { revision: 105_002, agentCount: 1, prunedTo: 1 };
    await vi.advanceTimersByTimeAsync(2_000);
    expect(log).toContain('prune 100000');
  });

  it('says when the database goes and comes back', async () => {
    isDown = true;
    await vi.advanceTimersByTimeAsync(4_000);
    isDown = false;
    await vi.advanceTimersByTimeAsync(4_000);
    expect(log.filter((line) => line.startsWith('store'))).toEqual(['store down', 'store up']);
  });

  it('stops', async () => {
    await watch.stop();
    watch.lookNow();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(log).toEqual([]);
  });
});
