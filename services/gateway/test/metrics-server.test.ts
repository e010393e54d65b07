import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { Readiness, startMetricsServer } from '@patchbay/gateway';
import { NodeMetrics } from '@patchbay/telemetry';
import { afterAll, describe, expect, it } from 'vitest';

const metrics = new NodeMetrics({ prefix: 'kubemq' });
const readiness = new Readiness();
const host = 'loopback';

afterAll(() => metrics.shutdown());

async function takenPort(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return server;
}

describe('the metrics server', () => {
  it('serves metrics, health and readiness', async () => {
    const server = await startMetricsServer({ host, port: 0, isPortSet: true, metrics, readiness });
    metrics.countRequest('echo', 'message/send');
    const [url] = server.urls;
    const response = await fetch(`${url}/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await response.text()).toContain('kubemq_a2a_requests_total{agent_id="echo",method="message/send"} 1\n');
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect((await fetch(`${url}/`)).status).toBe(404);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
    await server.close();
  });

  it('takes a free port when nobody chose the one that is in use, and says so', async () => {
    const taken = await takenPort();
    const { port } = taken.address() as AddressInfo;
    const server = await startMetricsServer({ host, port, isPortSet: false, metrics, readiness });
    expect(server.isFallbackPort).toBe(true);
    expect(server.port).not.toBe(port);
    expect((await fetch(`http://localhost:${server.port}/healthz`)).status).toBe(200);
    await server.close();
    await expect(startMetricsServer({ host, port, isPortSet: true, metrics, readiness })).rejects.toThrow(
      `port ${port} is already in use; stop the program that uses it, or choose another port with PATCHBAY_METRICS_PORT`,
    );
    taken.close();
  });
});
