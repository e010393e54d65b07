import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient, rawPost } from './raw-client.js';
import { rpc, RunningFront } from './running-front.js';

const run = promisify(execFile);
const CLIENT = fileURLToPath(new URL('bad-input-client.mjs', import.meta.url));

let front: RunningFront;

/** Collects garbage, which V8 otherwise keeps as long as nobody else wants the room. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

const MOST_GROWTH = 50_000_000;
/** What the system may hold of a connection's data at both ends, bytes: nobody can take that back. */
const KERNEL_HOLDS = 12_000_000;

beforeAll(async () => {
  front = await RunningFront.start({ patience: { headersMs: 1_000, requestMs: 2_000, stalledReplyMs: 500 } });
  front.serve('echo', (exchange, delivery) => exchange.reply(delivery.body));
});

afterAll(() => front[Symbol.asyncDispose]());

/** Sends `text` one byte every 50 ms for as long as the connection lives; resolves with the seconds that was. */
async function drip(client: RawClient, text: string): Promise<number> {
  const started = performance.now();
  let at = 0;
  const timer = setInterval(() => client.socket.write(text[at++ % text.length] ?? ''), 50);
  await client.closed(10_000);
  clearInterval(timer);
  return (client.closedAtMs ?? 0) - started;
}

describe('a client that takes its time', () => {
  it('with its headers is closed when its time is over', async () => {
    using client = await RawClient.send(front.url, 'POST /a2a/echo HTTP/1.1\r\nHost: x\r\nX-A: ');
    expect(await drip(client, 'a')).toBeLessThan(3_000);
    expect(client.text).toMatch(/^HTTP\/1\.1 408 [\s\S]*\{"error":"the request took too long to arrive"\}$/);
  });

  it('with its body is closed when its time is over, and the call never happens', async () => {
    using client = await RawClient.send(
      front.url,
      'POST /a2a/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n',
    );
    expect(await drip(client, 'a')).toBeLessThan(4_500);
    expect(client.status).toBe(408);
  });

  it('with a body that never ends likewise, on the registry too', async () => {
    using client = await RawClient.send(
      front.url,
      'POST /agents/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    expect(await drip(client, '1\r\na\r\n')).toBeLessThan(4_500);
  });

  it('and sends nothing at all is closed', async () => {
    using client = await RawClient.send(front.url, '');
    await client.closed(3_000);
  });

  it('to read a whole answer does not hold it for ever', async () => {
    const agents = Array.from({ length: 200 }, (_, at) => `large-${at}`);
    for (const id of agents) front.know(id, { description: 'x'.repeat(KERNEL_HOLDS / 50) });
    front.serve('large', (exchange) => exchange.reply(Buffer.alloc(4 * KERNEL_HOLDS, 0x20)));
    for (const request of [rawPost('/a2a/large', rpc('m')), 'GET /agents HTTP/1.1\r\nHost: x\r\n\r\n']) {
      using client = await RawClient.send(front.url, request);
      client.socket.pause();
      // The clock: clients that say nothing, each closed for its silence after about as long as this one is given.
      for (let round = 0; round < 3; round += 1) {
        using clock = await RawClient.send(front.url, '');
        await clock.closed();
      }
      client.socket.resume();
      await client.closed();
      expect(client.text.length).toBeLessThan(2 * KERNEL_HOLDS);
    }
    for (const id of agents) front.forget(id);
  });
});

describe('a call that takes longer than a request may take to arrive', () => {
  it.each(['message/send', 'message/stream'])('is answered: %s', async (method) => {
    front.serve('thinking', async (exchange) => {
      // The agent's work; the front gives a request 2 s to arrive.
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      if (exchange.wants === 'stream') {
        await exchange.write(Buffer.from('done'));
        exchange.end();
      } else exchange.reply(Buffer.from('done'));
    });
    const response = await front.call('thinking', rpc(method));
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('done');
  });
});

describe('what Node’s parser refuses', () => {
  it.each([
    [
      'headers of 64 KB',
      `GET /agents HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(65_536)}\r\n\r\n`,
      431,
      'the headers are longer than 16384 bytes',
    ],
    ['what is not HTTP', 'hello\r\n\r\n', 400, 'not valid HTTP/1.1'],
    [
      'two framings',
      'POST /a2a/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      'not valid HTTP/1.1',
    ],
  ])('%s gets a short JSON answer and is closed', async (_, text, status, error) => {
    using client = await RawClient.send(front.url, text);
    await client.closed();
    expect(client.status).toBe(status);
    expect(JSON.parse(client.body)).toEqual({ error });
  });
});

/** Sends bad requests of every kind from another process; how each kind ended. */
async function sendBad(count: number, hugeOneIn: number): Promise<Record<string, Record<string, number>>> {
  const args = [CLIENT, front.front.urls[0] ?? '', String(count), String(hugeOneIn)];
  const { stdout } = await run(process.execPath, args, { timeout: 50_000 });
  return JSON.parse(stdout) as Record<string, Record<string, number>>;
}

function expectRefusals(outcomes: Record<string, Record<string, number>>, kinds: number): void {
  const refusal = expect.stringMatching(/^(4\d\d|200 -32[67]00|closed)$/);
  for (const [kind, ends] of Object.entries(outcomes)) {
    for (const end of Object.keys(ends)) expect({ kind, end }).toEqual({ kind, end: refusal });
  }
  expect(Object.keys(outcomes)).toHaveLength(kinds);
}

describe('a thousand bad requests', () => {
  it('are all refused, take no memory and do no harm', async () => {
    await sendBad(100, 0);
    const before = process.memoryUsage.rss();
    expectRefusals(await sendBad(1_000, 0), 19);
    expect(process.memoryUsage.rss() - before).toBeLessThan(MOST_GROWTH);
    expect(await (await front.call('echo', rpc('m'))).text()).toBe(rpc('m'));
    expect(front.bus.stats()).toMatchObject({ requests: 0, streams: 0 });
  });

  it('with 20 of 10 MB among them leave no memory behind', async () => {
    // The same once before: the allocator keeps some of what such a burst took, for the next one.
    await sendBad(1_000, 50);
    collectGarbage();
    const before = process.memoryUsage.rss();
    expectRefusals(await sendBad(1_000, 50), 21);
    await eventually(
      () => {
        collectGarbage();
        return process.memoryUsage.rss() - before < MOST_GROWTH;
      },
      { everyMs: 200, withinMs: 5_000, what: 'the memory being free again' },
    );
  });
});
