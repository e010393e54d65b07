import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ENSURE = fileURLToPath(new URL('../../scripts/lib/ensure-servers.mjs', import.meta.url));

/** What `npm test` does about its servers, with finders of our own. */
async function ensure(finders: string): Promise<{ code: number; stderr: string }> {
  const script = `const { ensureServers } = await import(${JSON.stringify(ENSURE)}); await ensureServers(${finders});`;
  const child = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  return await child.then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
}

it('npm test fails with what to do for each server that cannot be had', async () => {
  const none = (hint: string): string => `async () => { throw new Error('${hint}') }`;
  expect(await ensure(`{ 'nats-server': ${none('install it')}, Postgres: ${none('put it on PATH')} }`)).toEqual({
    code: 1,
    stderr:
      'npm test needs a real nats-server and a real Postgres.\n  nats-server: install it\n  Postgres: put it on PATH\n',
  });
});

it('npm test goes on when both are there', async () => {
  expect(await ensure(`{ 'nats-server': async () => {}, Postgres: async () => {} }`)).toEqual({ code: 0, stderr: '' });
});
