import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findOrFetchNatsServer } from './nats-binary.js';

let cache: string;
beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'patchbay-cache-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(cache, { recursive: true, force: true });
});

it('says how to get a nats-server when there is none and none can be fetched', async () => {
  vi.stubEnv('PATH', cache);
  const failure = await findOrFetchNatsServer(['nats-server', '/nowhere/nats-server'], cache).catch(String);
  expect(failure).toMatch(
    /^Error: no nats-server found\. Install it \(Debian: apt-get install nats-server; macOS: brew install nats-server; .*put it on PATH/,
  );
  expect(failure).toContain('Fetching it failed: spawn apt-get ENOENT');
  expect(await readdir(cache)).toEqual([]);
});
