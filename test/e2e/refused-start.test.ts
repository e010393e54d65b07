import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PatchbayProcess } from '@patchbay/testkit';
import type { PatchbayProcessOptions } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let dataDir: string;
let running: PatchbayProcess;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-e2e-'));
  running = await PatchbayProcess.start({ dataDir });
});
afterAll(async () => {
  await running.stop();
  await rm(dataDir, { recursive: true, force: true });
});

/** Runs the product until it ends by itself; what it says, without the log. */
async function run(options: PatchbayProcessOptions): Promise<{ code: number | null; lines: string[] }> {
  await using node = await PatchbayProcess.spawn(options);
  const code = await node.exited;
  return { code, lines: node.output.split('\n').filter((line) => line !== '' && !line.startsWith('{')) };
}

describe('a start that cannot work ends with exit code 1 and one clear line', () => {
  it('for a port in use', async () => {
    const { port } = new URL(running.url);
    const { code, lines } = await run({ env: { PATCHBAY_HTTP_PORT: port } });
    expect(lines).toEqual([
      `patchbay: port ${port} is already in use; stop the program that uses it, or choose another port with PATCHBAY_HTTP_PORT`,
    ]);
    expect(code).toBe(1);
  });

  it('for a metrics port in use that somebody chose', async () => {
    const { port } = new URL(running.metricsUrl);
    const { code, lines } = await run({ env: { PATCHBAY_METRICS_PORT: port } });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`port ${port} is already in use.*PATCHBAY_METRICS_PORT`));
    expect(code).toBe(1);
  });

  it('for a port that is taken on IPv6 alone', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen({ host: '::1', port: 0 }, resolve);
    });
    const port = String((server.address() as { port: number }).port);
    const { code, lines } = await run({ env: { PATCHBAY_HTTP_PORT: port } });
    server.close();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`port ${port} is already in use`);
    expect(code).toBe(1);
  });

  it('for a data directory in use by another process', async () => {
    const { code, lines } = await run({ dataDir });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^patchbay: .*in use/);
    expect(lines[0]).toContain(String(running.child.pid));
    expect(code).toBe(1);
  });

  it('for a data directory that is a file', async () => {
    const file = join(dataDir, 'a-file');
    await writeFile(file, '');
    const { code, lines } = await run({ dataDir: file });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(file);
    expect(code).toBe(1);
  });

  it('for wrong settings, one line each', async () => {
    const { code, lines } = await run({ env: { PATCHBAY_AGENT_CONCURRENCY: '0', PATCHBAY_AGENT_TTL: '5' } });
    expect(lines).toEqual([
      'patchbay: PATCHBAY_AGENT_CONCURRENCY must be a whole number from 1 to 1000000; got "0"',
      'patchbay: PATCHBAY_AGENT_TTL is not a setting; did you mean PATCHBAY_AGENT_TTL_SECONDS?',
    ]);
    expect(code).toBe(1);
  });

  it('for a database that does not answer', async () => {
    const { code, lines } = await run({ env: { PATCHBAY_DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/x' } });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('hunter2');
    expect(code).toBe(1);
  });

  it.each([
    [['strat'], 'unknown command "strat"; one of start, config, migrate, help'],
    [['start', 'now'], 'unknown command "now"; one of start, config, migrate, help'],
    [['--port', '1'], 'Unknown option \'--port\'; see "patchbay help"'],
    [['--services', 'gateway'], /PATCHBAY_SERVICES must be all services while PATCHBAY_NATS_URL is not set/],
    [['--services', 'gatway'], /PATCHBAY_SERVICES must be one or more of registry, liveness, dispatch, gateway/],
  ])('for the command line %j', async (args, expected) => {
    const { code, lines } = await run({ args });
    expect(lines).toHaveLength(1);
    if (typeof expected === 'string') expect(lines[0]).toBe(`patchbay: ${expected}`);
    else expect(lines[0]).toMatch(expected);
    expect(code).toBe(1);
  });
});

describe('commands that end by themselves', () => {
  it('config prints every setting, secrets masked', async () => {
    const env = { PATCHBAY_DATABASE_URL: 'postgres://me:hunter2@db/x', PATCHBAY_PROFILE: 'kubemq' };
    const { code, lines } = await run({ args: ['config'], env });
    expect(lines.find((line) => line.startsWith('PATCHBAY_DATABASE_URL'))).toMatch(
      /postgres:\/\/\*\*\*@db\/x +environment$/,
    );
    expect(lines.find((line) => line.startsWith('PATCHBAY_NAME'))).toMatch(/kubemq +profile$/);
    expect(lines.join('\n')).not.toContain('hunter2');
    expect(code).toBe(0);
  });

  it('help and --version', async () => {
    expect((await run({ args: ['help'] })).lines[0]).toContain('patchbay');
    expect(await run({ args: ['--version'] })).toEqual({ code: 0, lines: [expect.stringMatching(/^\d+\.\d+\.\d+$/)] });
  });

  it('migrate brings the database up to date', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'patchbay-e2e-'));
    expect((await run({ args: ['migrate'], dataDir: folder })).lines[0]).toMatch(/^Migrated: 0001/);
    expect(await run({ args: ['migrate'], dataDir: folder })).toEqual({
      code: 0,
      lines: ['The database is up to date.'],
    });
    await rm(folder, { recursive: true, force: true });
  });
});
