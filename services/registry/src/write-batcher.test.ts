import { PatchbayError } from '@patchbay/core';
import { describe, expect, it } from 'vitest';
import { WriteBatcher } from './write-batcher.js';

const LIMITS = { maxRows: 3, maxBytes: 100, maxWaitingRows: 5, maxWaitingBytes: 200 };

/** A commit that is finished by hand. */
class Commits {
  readonly batches: string[][] = [];
  #finish: ((error?: Error) => void)[] = [];

  readonly commit = (writes: readonly string[]): Promise<string[]> => {
    this.batches.push([...writes]);
    return new Promise((resolve, reject) => {
      this.#finish.push((error) => {
        if (error === undefined) resolve(writes.map((write) => `${write}!`));
        else reject(error);
      });
    });
  };

  async finish(error?: Error): Promise<void> {
    this.#finish.shift()?.(error);
    await turns();
  }
}

async function turns(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function start(limits = LIMITS) {
  const commits = new Commits();
  const batcher = new WriteBatcher<string, string>(commits.commit, limits);
  const submit = (write: string, size = 1, assertWanted = (): void => {}): Promise<string> => {
    const result = batcher.submit({ write, size, assertWanted });
    result.catch(() => undefined);
    return result;
  };
  return { commits, batcher, submit };
}

describe('WriteBatcher', () => {
  it('commits one batch at a time; what arrives meanwhile makes up the next', async () => {
    const { commits, submit } = start();
    const first = [submit('a'), submit('b')];
    await turns();
    const second = [submit('c'), submit('d')];
    await turns();
    expect(commits.batches).toEqual([['a', 'b']]);
    await commits.finish();
    expect(await Promise.all(first)).toEqual(['a!', 'b!']);
    expect(commits.batches).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
    await commits.finish();
    expect(await Promise.all(second)).toEqual(['c!', 'd!']);
  });

  it('keeps a batch within its rows and bytes; what is larger goes alone', async () => {
    const { commits, submit } = start();
    for (const write of ['a', 'b', 'c', 'd']) void submit(write);
    await turns();
    await commits.finish();
    await commits.finish();
    void submit('big', 150);
    void submit('e', 10);
    await turns();
    await commits.finish();
    expect(commits.batches).toEqual([['a', 'b', 'c'], ['d'], ['big'], ['e']]);
  });

  it('refuses what does not fit in the queue, and says so', async () => {
    const { commits, submit } = start();
    void submit('a');
    await turns();
    for (const write of ['b', 'c', 'd', 'e', 'f']) void submit(write);
    const refusal = { code: 'store_unavailable', message: expect.stringContaining('5 writes are waiting') };
    await expect(submit('g')).rejects.toMatchObject(refusal);
    await commits.finish();
    await expect(submit('h', 200)).rejects.toMatchObject({ code: 'store_unavailable', retryable: true });
    const fits = submit('i', 100);
    for (let batch = 0; batch < 3; batch += 1) await commits.finish();
    expect(await fits).toBe('i!');
  });

  it('fails the rows of a failed batch alone', async () => {
    const { commits, submit } = start();
    const lost = submit('a');
    await turns();
    const next = submit('b');
    await commits.finish(new PatchbayError('store_unavailable', 'the database is away'));
    await expect(lost).rejects.toMatchObject({ code: 'store_unavailable' });
    await commits.finish();
    expect(await next).toBe('b!');
  });

  it('does not write for a caller who has left', async () => {
    const { commits, submit } = start();
    void submit('a');
    await turns();
    const left = submit('b', 1, () => {
      throw new PatchbayError('cancelled', 'the caller has left');
    });
    const stays = submit('c');
    await commits.finish();
    await expect(left).rejects.toMatchObject({ code: 'cancelled' });
    await commits.finish();
    expect(await stays).toBe('c!');
    expect(commits.batches).toEqual([['a'], ['c']]);
  });

  it('is idle when everything was committed', async () => {
    const { commits, batcher, submit } = start();
    await batcher.idle();
    void submit('a');
    let isIdle = false;
    const idle = batcher.idle().then(() => (isIdle = true));
    await turns();
    expect(isIdle).toBe(false);
    await commits.finish();
    await idle;
  });
});
