import { loadConfig } from '@patchbay/config';
import { expect, it } from 'vitest';
import { banner } from './banner.js';

const facts = {
  config: loadConfig({ PATCHBAY_NODE_ID: 'node-1', PATCHBAY_DATA_DIR: '/data' }).config,
  url: 'http://localhost:4321',
  metricsUrl: 'http://localhost:8080',
  isMetricsPortMoved: false,
  readyInMs: 411.6,
};

it('gives complete commands with the real port', () => {
  const text = banner(facts);
  expect(text).toContain('is ready in 412 ms');
  expect(text).toContain('embedded, in /data: for one machine, one process');
  expect(text).toContain(
    "curl -X POST http://localhost:4321/agents/register -H 'Content-Type: application/json' -d '{",
  );
  expect(text).toContain("curl -X POST http://localhost:4321/a2a/my-agent -H 'Content-Type: application/json' -d '{");
  expect(text).toContain('leaves after 300 s without heartbeats');
});

it('says when metrics moved, when agents stay, and when there is no front', () => {
  expect(banner({ ...facts, isMetricsPortMoved: true })).toContain('(port 8080 is in use)');
  const { config } = loadConfig({ PATCHBAY_AGENT_TTL_SECONDS: '0' });
  expect(banner({ ...facts, config })).toContain('Agents stay until they are deregistered');
  expect(banner({ ...facts, url: null })).not.toContain('curl');
});
