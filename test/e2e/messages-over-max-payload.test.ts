import { createHash, randomBytes } from 'node:crypto';
import { PatchbayCluster, startScriptedAgent } from '@patchbay/testkit';
import type { PatchbayProcess, ScriptedAgent } from '@patchbay/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

const MIB = 1024 * 1024;
const REQUEST_BYTES = 5 * MIB;
const REPLY_BYTES = 9 * MIB;

let agent: ScriptedAgent;
let cluster: PatchbayCluster;
let front: PatchbayProcess;
/** SHA-256 of each body that reached the agent. */
const received: string[] = [];
/** What the agent answers. */
let reply: Buffer;

beforeAll(async () => {
  reply = jsonRpc('result', REPLY_BYTES);
  agent = await startScriptedAgent({
    kind: 'custom',
    handle: (_request, response, body) => {
      received.push(sha256(body));
      response.writeHead(200, { 'content-type': 'application/json' }).end(reply);
    },
  });
  // One stock server takes 1 MiB a message. The first node only answers HTTP: every call crosses to the other.
  cluster = await PatchbayCluster.start({
    nodes: 2,
    natsServers: 1,
    env: { PATCHBAY_LOCAL_FIRST: 'false' },
    envOf: (index) => (index === 0 ? { PATCHBAY_SERVICES: 'gateway' } : {}),
  });
  const [first] = cluster.nodes;
  if (first === undefined) throw new Error('there is no node');
  front = first;
  await registerAgent(front, 'large', agent.url);
});
afterAll(async () => {
  await cluster?.stop();
  await agent?.[Symbol.asyncDispose]();
});

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** An envelope of exactly `bytes` bytes that does not compress into a pattern, so that a piece out of order shows. */
function jsonRpc(member: 'params' | 'result', bytes: number): Buffer {
  const method = member === 'params' ? '"method":"message/send",' : '';
  const [head, tail] = [`{"jsonrpc":"2.0","id":1,${method}"${member}":{"text":"`, '"}}'];
  const room = bytes - head.length - tail.length;
  return Buffer.from(
    head +
      randomBytes(Math.ceil(room / 2))
        .toString('hex')
        .slice(0, room) +
      tail,
  );
}

async function post(body: Buffer): Promise<Buffer> {
  const response = await fetch(`${front.url}/a2a/large`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: new Uint8Array(body),
    signal: AbortSignal.timeout(30_000),
  });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

describe('messages larger than the NATS server takes, between two nodes', () => {
  it('a request of 5 MB and a reply of 9 MB arrive byte for byte', async () => {
    received.length = 0;
    const request = jsonRpc('params', REQUEST_BYTES);
    const answer = await post(request);
    expect(answer.length).toBe(REPLY_BYTES);
    expect(sha256(answer)).toBe(sha256(reply));
    expect(received).toEqual([sha256(request)]);
  });

  it('four at once do too, and small calls are answered meanwhile', async () => {
    received.length = 0;
    await using echo = await startScriptedAgent({ kind: 'echo' });
    await registerAgent(front, 'small', echo.url);
    const requests = Array.from({ length: 4 }, () => jsonRpc('params', REQUEST_BYTES));
    const done = new AbortController();
    const large = Promise.all(requests.map(post)).finally(() => done.abort());
    let slowestMs = 0;
    while (!done.signal.aborted) {
      const startMs = performance.now();
      expect((await callAgent(front, 'small')).error).toBeUndefined();
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
    }
    for (const answer of await large) expect(sha256(answer)).toBe(sha256(reply));
    expect(received.toSorted()).toEqual(requests.map(sha256).toSorted());
    expect(slowestMs).toBeLessThan(2_000);
  });

  it('what is over the limits of Patchbay itself is a clear error, and the connection to NATS stays up', async () => {
    const tooLarge = JSON.parse((await post(jsonRpc('params', 11 * MIB))).toString()) as { error: { message: string } };
    expect(tooLarge.error.message).toContain('request too large: over 10485760 bytes');
    expect((await post(jsonRpc('params', 1_000))).length).toBe(REPLY_BYTES);
    for (const node of cluster.nodes) expect(node.output).not.toMatch(/NATS complains|link to the message bus/);
  });
});
