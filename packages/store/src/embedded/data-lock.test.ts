import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StoreLog } from '../store-log.js';
import { DataLock } from './data-lock.js';
import { processStart } from './process-start.js';

const warnings: string[] = [];
const logger: StoreLog = { info: () => {}, warn: (_, message) => warnings.push(message), error: () => {} };
/** Larger than any pid that Linux gives. */
const NO_PID = 2 ** 22 + 1;

let dataDir: string;
let file: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-lock-'));
  file = join(dataDir, 'patchbay.lock');
  warnings.length = 0;
});
afterEach(async () => {
  await rm(dataDir, { recursive: true });
});

async function hold(holder: object): Promise<void> {
  await writeFile(file, JSON.stringify(holder));
}

/** Makes it look as old as a minute. */
async function age(path: string): Promise<void> {
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(path, longAgo, longAgo);
}

describe('the lock of a data directory', () => {
  test('names its process and goes with it', async () => {
    const lock = await DataLock.take(dataDir, logger);
    const start = processStart(process.pid);
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
      pid: process.pid,
      host: hostname(),
      ...(start === undefined ? {} : { start }),
    });
    await lock.release();
    expect(readdirSync(dataDir)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test('is refused while its process lives, with pid and directory', async () => {
    const start = processStart(process.ppid);
    await hold({ pid: process.ppid, host: hostname(), start });
    await expect(DataLock.take(dataDir, logger)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: `the data directory ${dataDir} is in use by another process (pid ${process.ppid}); stop it, or choose another directory with PATCHBAY_DATA_DIR`,
    });
    expect(readdirSync(dataDir)).toEqual(['patchbay.lock']);
  });

  test.each([
    ['whose process is gone', { pid: NO_PID, host: hostname(), start: 'boot/1' }],
    ['whose pid belongs to another process now', { pid: process.ppid, host: hostname(), start: 'boot/1' }],
    ['of an earlier life of this pid, as in a container', { pid: process.pid, host: hostname(), start: 'boot/1' }],
  ])('is taken over when it is one %s', async (_, holder) => {
    await hold(holder);
    const lock = await DataLock.take(dataDir, logger);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ pid: process.pid });
    expect(warnings).toEqual(['took over the data directory of a process that is gone']);
    await lock.release();
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test('that says nothing is being written, or was left by a crash', async () => {
    await writeFile(file, '');
    await expect(DataLock.take(dataDir, logger)).rejects.toThrow('in use by a process that is starting');
    await age(file);
    await (await DataLock.take(dataDir, logger)).release();
  });

  test('is taken over where a takeover was left by a crash', async () => {
    await hold({ pid: NO_PID, host: hostname() });
    await mkdir(`${file}.takeover`);
    await age(`${file}.takeover`);
    await (await DataLock.take(dataDir, logger)).release();
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test('of another machine or container counts as long as it is touched', async () => {
    await hold({ pid: NO_PID, host: 'elsewhere' });
    await expect(DataLock.take(dataDir, logger)).rejects.toThrow(`in use by a process on elsewhere (pid ${NO_PID})`);
    await age(file);
    await (await DataLock.take(dataDir, logger)).release();
    expect(existsSync(file)).toBe(false);
  });

  test('is left alone when somebody else has it by now', async () => {
    const lock = await DataLock.take(dataDir, logger);
    await hold({ pid: NO_PID, host: 'elsewhere' });
    await lock.release();
    expect(existsSync(file)).toBe(true);
  });

  test('goes to one of many that find it stale', async () => {
    await hold({ pid: NO_PID, host: hostname(), start: 'boot/1' });
    const takers = await Promise.allSettled(Array.from({ length: 8 }, () => DataLock.take(dataDir, logger)));
    const taken = takers.filter((taker) => taker.status === 'fulfilled');
    expect(taken).toHaveLength(1);
    for (const taker of takers) {
      if (taker.status === 'rejected') expect(taker.reason).toMatchObject({ code: 'invalid_argument' });
    }
    await taken[0]?.value.release();
    expect(readdirSync(dataDir)).toEqual([]);
  });
});
