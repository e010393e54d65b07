import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { eventually } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import { RawClient, rawPost } from './raw-client.js';
import { rpc, RunningFront } from './running-front.js';

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);

describe('listening', () => {
  it('is on both loopback addresses, one port', async () => {
    await using front = await RunningFront.start();
    const { port } = front.front;
    expect(front.front.urls).toEqual([`http://127.0.0.1:${port}`, ...(hasIpv6 ? [`http://[::1]:${port}`] : [])]);
    for (const url of front.front.urls) expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it.each(['0.0.0.0', '127.0.0.1'])('can be on %s', async (httpHost) => {
    await using front = await RunningFront.start({ settings: { httpHost } });
    expect(front.front.urls).toEqual([`http://${httpHost}:${front.front.port}`]);
    expect((await fetch(`http://127.0.0.1:${front.front.port}/healthz`)).status).toBe(200);
  });

  it('names the port and the setting when it is taken', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => {
      taken.listen(0, '127.0.0.1', resolve);
    });
    const { port } = taken.address() as AddressInfo;
    await expect(RunningFront.start({ settings: { httpPort: port } })).rejects.toThrow(
      `port ${port} is already in use; stop the program that uses it, or choose another port with PATCHBAY_HTTP_PORT`,
    );
    await new Promise((resolve) => {
      taken.close(resolve);
    });
  });

  it('names the setting when the address is not ours', async () => {
    await expect(RunningFront.start({ settings: { httpHost: '192.0.2.1' } })).rejects.toThrow(/PATCHBAY_HTTP_HOST/);
  });

  it('takes 300 connections at once', async () => {
    await using front = await RunningFront.start();
    const clients = await Promise.all(
      Array.from({ length: 300 }, () => RawClient.send(front.url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')),
    );
    await Promise.all(clients.map((client) => client.received('{"status":"ok"}')));
    for (const client of clients) client[Symbol.dispose]();
  });
});

describe('health', () => {
  it('shows every condition by name, and is 503 when a required one is not met', async () => {
    let isBusUp = true;
    await using front = await RunningFront.start({
      conditions: () => [
        { name: 'directory', isMet: isBusUp, ...(isBusUp ? {} : { detail: 'no snapshot yet' }) },
        { name: 'bus', isMet: false, isRequired: false },
      ],
    });
    const ready = async () => {
      const response = await fetch(`${front.url}/readyz`);
      return { status: response.status, body: await response.json() };
    };
    expect(await ready()).toEqual({
      status: 200,
      body: {
        ready: true,
        draining: false,
        conditions: { directory: { met: true, required: true }, bus: { met: false, required: false } },
      },
    });
    isBusUp = false;
    expect(await ready()).toMatchObject({
      status: 503,
      body: { conditions: { directory: { detail: 'no snapshot yet' } } },
    });
    expect(await (await fetch(`${front.url}/healthz`)).json()).toEqual({ status: 'ok' });
  });

  it('has a status page that loads nothing and lets nothing through', async () => {
    await using front = await RunningFront.start({ settings: { name: 'a<b' } });
    front.know('evil-01', { name: '<script>alert(1)</script>"\'&', url: 'http://x/"><img src=x onerror=alert(1)>' });
    const response = await fetch(`${front.url}/status`);
    const html = await response.text();
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(html).toContain('<td>&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;</td><td>evil-01</td>');
    expect(html).toContain('test-node');
    expect(html).toContain('0.1.0');
    expect(html).not.toMatch(/<script|<img|<link|href=/);
  });
});

describe('draining', () => {
  it('finishes what is in flight, says close, and takes nothing new', async () => {
    await using front = await RunningFront.start();
    let finish: (() => void) | undefined;
    front.serve('slow', (exchange, delivery) => {
      return new Promise<void>((resolve) => {
        finish = () => {
          exchange.reply(delivery.body);
          resolve();
        };
      });
    });
    using idle = await RawClient.send(front.url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await idle.received('ok');
    using busy = await RawClient.send(front.url, rawPost('/a2a/slow', rpc('m')));
    await eventually(() => front.bus.stats().requests === 1);
    const drained = front.front.drain(5_000);
    await idle.closed(1_000);
    expect(busy.closedAtMs).toBeUndefined();
    await expect(fetch(`${front.url}/healthz`)).rejects.toThrow();
    expect(front.readiness.report()).toMatchObject({ ready: false, draining: true });
    finish?.();
    await drained;
    await busy.closed();
    expect(busy.text).toMatch(/Connection: close/i);
    expect(busy.body).toBe(rpc('m'));
    await front.front.drain(0);
  });

  it('destroys what does not finish', async () => {
    await using front = await RunningFront.start();
    front.serve(
      'stuck',
      (exchange) => new Promise((resolve) => exchange.signal.addEventListener('abort', () => resolve())),
    );
    using client = await RawClient.send(front.url, rawPost('/a2a/stuck', rpc('m')));
    await eventually(() => front.bus.stats().requests === 1);
    const started = performance.now();
    await front.front.drain(200);
    expect(performance.now() - started).toBeLessThan(2_000);
    await client.closed();
    await eventually(() => front.bus.stats().requests === 0);
  });

  it('turns not ready before, on request', async () => {
    await using front = await RunningFront.start();
    front.readiness.startDraining();
    const response = await fetch(`${front.url}/readyz`);
    expect(response.status).toBe(503);
    expect(response.headers.get('connection')).toBe('close');
  });
});

describe('series of metrics', () => {
  it('are for registered agents only, and go with them', async () => {
    await using front = await RunningFront.start();
    front.serve('counted', (exchange, delivery) => exchange.reply(delivery.body));
    for (const method of ['message/send', 'message/send', 'made/up', 'other/made/up']) {
      await (await front.call('counted', rpc(method))).text();
      await (await front.call('nobody', rpc(method))).text();
    }
    const metrics = await front.metrics.render();
    expect(metrics).toContain('patchbay_a2a_requests_total{agent_id="counted",method="message/send"} 2\n');
    expect(metrics).toContain('patchbay_a2a_requests_total{agent_id="counted",method="unknown"} 2\n');
    expect(metrics).toContain('patchbay_a2a_errors_total{code="agent_not_found"} 4\n');
    expect(metrics).not.toContain('nobody');
    front.forget('counted');
    expect(await front.metrics.render()).not.toContain('agent_id="counted"');
  });
});
