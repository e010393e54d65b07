import { setTimeout as delay } from 'node:timers/promises';
import { eventually, PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { openRawStream, registerAgent } from '../support/gateway-client.js';
import { startKubemqAgent } from '../support/kubemq-agents.js';

const EVENT = `event: task.status\ndata: {"type":"status_update","payload":{"fill":"${'x'.repeat(16_000)}"}}\n\n`;

test('a reader of 1 KB/s does not make the node hold what a fast agent emits', async () => {
  let sentBytes = 0;
  await using firehose = await startKubemqAgent((_rpc, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const more = (): void => {
      while (!response.destroyed) {
        sentBytes += EVENT.length;
        if (!response.write(EVENT)) {
          response.once('drain', more);
          return;
        }
      }
    };
    more();
  });
  await using clock = await startKubemqAgent(async (_rpc, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let n = 0; n < 200 && !response.destroyed; n += 1) {
      response.write(`event: task.status\ndata: {"type":"status_update","payload":{"at":${Date.now()}}}\n\n`);
      await delay(20);
    }
    response.end();
  });
  await using node = await PatchbayProcess.start();
  await registerAgent(node, 'firehose', firehose.url);
  await registerAgent(node, 'clock', clock.url);
  const memory = async (): Promise<number> => {
    const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
    return Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]);
  };

  const slow = await openRawStream(node, 'firehose');
  const beforeBytes = await memory();
  // The slow reader takes 1 KB/s by hand; the kernel's buffers and one window are all that may be in between.
  const reader = setInterval(() => slow.read(1_024), 1_000);
  const lateMs: number[] = [];
  const fast = await openRawStream(node, 'clock');
  fast.on('data', (chunk: Buffer) => {
    for (const match of chunk.toString().matchAll(/"payload":\{"at":(\d+)\}/g))
      lateMs.push(Date.now() - Number(match[1]));
  });
  fast.resume();
  await eventually(() => lateMs.length >= 150, { withinMs: 20_000, what: '150 events of the other stream' });
  clearInterval(reader);
  const stalledAt = sentBytes;
  await delay(1_000);
  expect(sentBytes - stalledAt).toBeLessThan(2_000_000);
  expect(sentBytes).toBeLessThan(40_000_000);
  expect((await memory()) - beforeBytes).toBeLessThan(60_000_000);
  expect(lateMs.toSorted((a, b) => a - b)[Math.floor(lateMs.length * 0.9)] ?? Infinity).toBeLessThan(500);
  slow.destroy();
  fast.destroy();
});
