import { ByteBudget, ManualClock } from '@patchbay/core';
import { eventually } from '@patchbay/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RawClient, rawPost } from './raw-client.js';
import { rpc, RunningFront } from './running-front.js';

const MAX_BYTES = 40_000_000;
/** More than the system takes of a reply that nobody reads. */
const LARGE = 30_000_000;
const WORDS = `the gateway holds as many bytes for its clients as PATCHBAY_MAX_BUFFERED_BYTES (${MAX_BYTES}) allows; try again later`;

const clock = new ManualClock();
const budget = new ByteBudget(MAX_BYTES, clock);
let front: RunningFront;

beforeAll(async () => {
  front = await RunningFront.start({ budget });
  front.serve('echo', (exchange, { body }) => exchange.reply(body));
  front.serve('large', async (exchange) => {
    const bytes = Buffer.alloc(LARGE, 0x78);
    if (exchange.wants === 'unary') exchange.reply(bytes);
    else {
      await exchange.write(Buffer.from('1'));
      await exchange.write(bytes);
      exchange.end();
    }
  });
});

afterAll(() => front[Symbol.asyncDispose]());

/** Everything given back: what nobody gives back is lost until the process ends. */
async function allReturned(): Promise<void> {
  await eventually(() => budget.usedBytes === 0, { what: 'all bytes being given back' });
}

it('has no room for a large body: refused while it is read, 429 for those who name a version', async () => {
  const other = budget.claim();
  other.reserve(MAX_BYTES - 100_000);
  const body = rpc('m', 1, { fill: 'x'.repeat(5_000_000) });
  const legacy = await front.call('echo', body);
  expect(legacy.status).toBe(200);
  expect(await legacy.json()).toEqual({
    jsonrpc: '2.0',
    id: null,
    error: { code: -32603, message: `internal error: ${WORDS}` },
  });
  const versioned = await front.call('echo', body, { 'A2A-Version': '1.0' });
  expect(versioned.status).toBe(429);
  expect(await versioned.json()).toMatchObject({ error: { code: -32603, data: [{ reason: 'RATE_LIMITED' }] } });
  const card = await fetch(`${front.url}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: 'x'.repeat(250_000),
  });
  expect(card.status).toBe(429);
  expect(await card.json()).toEqual({ error: WORDS });
  expect(await (await front.call('echo', rpc('m'))).text()).toBe(rpc('m'));
  other.release();
  expect(await (await front.call('echo', body)).text()).toBe(body);
  await allReturned();
});

it('gives the room of a body back when its client leaves in the middle', async () => {
  const client = await RawClient.send(
    front.url,
    rawPost('/a2a/echo', 'x'.repeat(1_000_000)).replace(/Content-Length: \d+/, 'Content-Length: 2000000'),
  );
  await eventually(() => budget.usedBytes >= 1_000_000, { what: 'the body being counted' });
  client.socket.destroy();
  await allReturned();
});

it('has no room for a reply, or for an event of a stream: an error comes in its place', async () => {
  const other = budget.claim();
  other.reserve(MAX_BYTES - LARGE + 1);
  expect(await (await front.call('large', rpc('m', 7))).json()).toEqual({
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32603, message: `internal error: ${WORDS}` },
  });
  const stream = await (await front.call('large', rpc('message/stream', 7))).text();
  expect(stream).toMatch(/^data: 1\n\n[^]*PATCHBAY_MAX_BUFFERED_BYTES/);
  other.release();
  await allReturned();
});

it.each(['m', 'message/stream'])(
  'cuts off a reply that nobody reads for others once it is a second old: %s',
  async (method) => {
    using silent = await RawClient.send(front.url, rawPost('/a2a/large', rpc(method)));
    silent.socket.pause();
    await eventually(() => budget.usedBytes >= LARGE, { what: 'the unread reply being counted' });
    expect(await (await front.call('large', rpc('m'))).text()).toContain('PATCHBAY_MAX_BUFFERED_BYTES');
    clock.advance(1_001);
    expect(await (await front.call('large', rpc('m'))).text()).toHaveLength(LARGE);
    silent.socket.resume();
    await silent.closed();
    expect(silent.text.length).toBeLessThan(LARGE);
    await allReturned();
  },
);

it('has no room for a list of agents', async () => {
  for (let at = 0; at < 100; at += 1) front.know(`listed-${at}`, { description: 'x'.repeat(2_000) });
  const list = await fetch(`${front.url}/agents`);
  expect(list.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await list.json()).toHaveLength(102);
  const other = budget.claim();
  other.reserve(MAX_BYTES - 100_000);
  const refused = await fetch(`${front.url}/agents`);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toEqual({ error: WORDS });
  expect((await fetch(`${front.url}/agents?limit=1`)).status).toBe(200);
  other.release();
});
