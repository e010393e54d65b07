import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { eventually, PatchbayProcess } from '@patchbay/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';
import { startKubemqAgent } from '../support/kubemq-agents.js';

const MEBIBYTE = 1_048_576;
const BUDGET = 64 * MEBIBYTE;
const SLACK = 150 * MEBIBYTE;
const BIG = Buffer.alloc(9_900_000, 0x20);

let node: PatchbayProcess;
let agent: Awaited<ReturnType<typeof startKubemqAgent>>;
const sockets: Socket[] = [];

beforeAll(async () => {
  const reply = `{"jsonrpc":"2.0","id":1,"result":{"fill":"${'x'.repeat(9_900_000)}"}}`;
  agent = await startKubemqAgent((rpc, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(rpc.method === 'big' ? reply : '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}');
  });
  node = await PatchbayProcess.start({
    env: { PATCHBAY_AGENT_CONCURRENCY: '1000', PATCHBAY_MAX_BUFFERED_BYTES: String(BUDGET) },
  });
  await registerAgent(node, 'agent', agent.url);
});

afterAll(async () => {
  closeAll();
  await node.stop();
  await agent[Symbol.asyncDispose]();
});

async function memory(): Promise<number> {
  const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]);
}

/** The most memory the node had while `isOver` was not yet true. */
async function peakUntil(isOver: () => boolean, what: string): Promise<number> {
  let peak = 0;
  await eventually(
    async () => {
      peak = Math.max(peak, await memory());
      return isOver();
    },
    { everyMs: 50, withinMs: 60_000, what },
  );
  return peak;
}

function open(): Socket {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(node.url).port) });
  socket.on('error', () => undefined); // being cut off is one of the expected ends
  sockets.push(socket);
  return socket;
}

function closeAll(): void {
  for (const socket of sockets.splice(0)) socket.destroy();
}

/** A call as raw HTTP; its body has `missing` bytes fewer than announced. */
function post(method: string, missing = 0): string {
  const body = `{"jsonrpc":"2.0","id":1,"method":"${method}"}`;
  const length = body.length + missing;
  return `POST /a2a/agent HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

async function fetchCall(body: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(`${node.url}/a2a/agent`, { method: 'POST', headers, body })).text();
}

test('300 bodies that are never finished are held up to the budget, and other callers go on', async () => {
  const before = await memory();
  const answers: string[] = [];
  const sent = new Set<Socket>();
  for (let count = 0; count < 300; count += 1) {
    const socket = open();
    socket.once('data', (chunk) => answers.push(chunk.toString()));
    socket.write(post('message/send', BIG.length + 1_000));
    socket.write(BIG, () => sent.add(socket));
  }
  const peak = await peakUntil(() => sent.size === 300, '300 bodies being sent');
  expect(peak - before).toBeLessThan(BUDGET + SLACK);
  expect((await callAgent(node, 'agent')).result).toEqual({ ok: true });
  const refusal =
    /^HTTP\/1\.1 200 OK[\s\S]*"code":-32603,"message":"internal error: the gateway holds as many bytes .* PATCHBAY_MAX_BUFFERED_BYTES \(67108864\)/;
  // The others are those that found room, and those whose 30 s were over before.
  expect(answers.filter((answer) => refusal.test(answer)).length).toBeGreaterThan(150);
  closeAll();
  // The room is free again: a large body is taken.
  const large = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"fill":"${'x'.repeat(9_000_000)}"}}`;
  await eventually(async () => (await fetchCall(large)).includes('"ok":true'), { what: 'a large body being taken' });
});

test('300 replies that are not read are held up to the budget, and whoever reads gets theirs', async () => {
  const before = await memory();
  let answered = 0;
  for (let count = 0; count < 300; count += 1) {
    const socket = open();
    socket.write(post('big'));
    socket.once('readable', () => {
      answered += 1;
    });
  }
  const peak = await peakUntil(() => answered === 300, '300 replies being begun');
  expect(peak - before).toBeLessThan(BUDGET + SLACK);
  expect((await callAgent(node, 'agent')).result).toEqual({ ok: true });
  // Replies that stood for a second make room.
  const isWhole = async (): Promise<boolean> =>
    (await fetchCall('{"jsonrpc":"2.0","id":1,"method":"big"}')).length > BIG.length;
  await eventually(isWhole, { withinMs: 5_000, what: 'a large reply being read' });
});
