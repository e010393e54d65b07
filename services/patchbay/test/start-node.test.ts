import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@patchbay/config';
import { silentLogger } from '@patchbay/telemetry';
import { startScriptedAgent } from '@patchbay/testkit';
import { startNode } from 'patchbay';
import { afterEach, beforeEach, expect, it } from 'vitest';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-node-'));
});
afterEach(async () => {
  await rm(dataDir, { recursive: true, force: true });
});

function settings() {
  return loadConfig({
    PATCHBAY_HTTP_PORT: '0',
    PATCHBAY_METRICS_PORT: '0',
    PATCHBAY_DATA_DIR: dataDir,
    PATCHBAY_DRAIN_SECONDS: '1',
  });
}

async function post(url: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

it('runs in this process on free ports, and leaves nothing behind', async () => {
  await using agent = await startScriptedAgent({ kind: 'echo' });
  const node = await startNode(settings(), { logger: silentLogger() });
  expect(node.url).toMatch(/^http:\/\/localhost:\d+$/);
  await post(`${node.url}/agents/register`, { agent_id: 'echo', name: 'Echo', url: agent.url });
  const call = { jsonrpc: '2.0', id: 7, method: 'message/send', params: { a: 1 } };
  expect(await post(`${node.url}/a2a/echo`, call)).toEqual({ jsonrpc: '2.0', id: 7, result: { echo: { a: 1 } } });
  expect(await (await fetch(`${node.metricsUrl}/metrics`)).text()).toContain(
    'patchbay_a2a_requests_total{agent_id="echo",method="message/send"} 1',
  );
  expect(await (await fetch(`${node.metricsUrl}/readyz`)).json()).toMatchObject({
    ready: true,
    conditions: { directory: { met: true }, bus: { met: true }, store: { met: true } },
  });
  expect(await node.stop()).toBe(true);
  expect(await node.stop()).toBe(true);
  await expect(fetch(`${node.url}/healthz`)).rejects.toThrow();
  await expect(fetch(`${node.metricsUrl}/healthz`)).rejects.toThrow();

  // The data directory is free again.
  const again = await startNode(settings(), { logger: silentLogger() });
  expect(await (await fetch(`${again.url}/agents`)).json()).toMatchObject([{ agent_id: 'echo' }]);
  await again.stop();
});

it('closes what is open when the start is aborted', async () => {
  const controller = new AbortController();
  const starting = startNode(settings(), { logger: silentLogger(), signal: controller.signal });
  controller.abort();
  await expect(starting).rejects.toThrow();
  const node = await startNode(settings(), { logger: silentLogger() });
  expect(await node.stop()).toBe(true);
});

it('closes what is open when a later part cannot start', async () => {
  await using taken = await startScriptedAgent({ kind: 'echo' });
  const { port } = new URL(taken.url);
  const loaded = loadConfig({
    PATCHBAY_HTTP_PORT: port,
    PATCHBAY_HTTP_HOST: '127.0.0.1',
    PATCHBAY_METRICS_PORT: '0',
    PATCHBAY_DATA_DIR: dataDir,
  });
  await expect(startNode(loaded, { logger: silentLogger() })).rejects.toThrow(`port ${port} is already in use`);
  const node = await startNode(settings(), { logger: silentLogger() });
  expect(await node.stop()).toBe(true);
});
