import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, PatchbayProcess, startScriptedAgent } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callAgent, registerAgent } from '../support/gateway-client.js';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'patchbay-e2e-'));
});
afterEach(async () => {
  await rm(dataDir, { recursive: true, force: true });
});

async function card(node: PatchbayProcess, agentId: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${node.url}/agents/${agentId}`)).json()) as Record<string, unknown>;
}

describe('a node', () => {
  it('registers, calls and streams, ends well on Ctrl-C, and finds its agents again', async () => {
    await using agent = await startScriptedAgent({
      kind: 'stream',
      events: [{ data: { jsonrpc: '2.0', id: 1, result: { n: 1 } } }, { data: 'two' }],
    });
    await using echo = await startScriptedAgent({ kind: 'echo' });
    const first = await PatchbayProcess.start({ dataDir });
    await registerAgent(first, 'streamer', agent.url);
    const registered = await registerAgent(first, 'echo', echo.url, { 'x-custom': { kept: true } });
    expect(await callAgent(first, 'echo', 'message/send', { a: 1 })).toMatchObject({ result: { echo: { a: 1 } } });
    const stream = await fetch(`${first.url}/a2a/streamer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"message/stream"}',
    });
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    expect(await stream.text()).toContain('data: two\n\n');
    expect(first.output).toContain('is ready in');
    expect(await first.stop('SIGINT')).toBe(0);
    expect(first.output).toContain('"is_clean":true');

    await using second = await PatchbayProcess.start({ dataDir });
    expect(await card(second, 'echo')).toMatchObject({
      registered_at: registered['registered_at'],
      'x-custom': { kept: true },
    });
    expect(await callAgent(second, 'echo')).toMatchObject({ result: {} });
  });

  it('loses nothing that it acknowledged when it is killed', async () => {
    await using node = await PatchbayProcess.start({ dataDir });
    const acknowledged: string[] = [];
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let count = 0; ; count += 1) {
        const agentId = `agent-${writer}-${count}`;
        await registerAgent(node, agentId, 'http://localhost:9/');
        acknowledged.push(agentId);
      }
    });
    const ended = Promise.allSettled(writers);
    await eventually(() => acknowledged.length >= 100, { withinMs: 20_000 });
    const killed = [...acknowledged];
    await node.stop('SIGKILL');
    await ended;

    await using again = await PatchbayProcess.start({ dataDir });
    const agents = (await (await fetch(`${again.url}/agents`)).json()) as { agent_id: string }[];
    const present = new Set(agents.map((agent) => agent.agent_id));
    expect(killed.filter((agentId) => !present.has(agentId))).toEqual([]);
    expect(acknowledged.filter((agentId) => !present.has(agentId))).toEqual([]);
  });

  it('lets a call in flight finish when it is told to stop, and takes no new ones', async () => {
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 1_000 });
    await using node = await PatchbayProcess.start({ dataDir });
    await registerAgent(node, 'slow', agent.url);
    const inFlight = callAgent(node, 'slow', 'message/send', { a: 1 });
    await eventually(() => agent.requests.length === 1);
    const ended = node.stop('SIGTERM');
    expect(await inFlight).toMatchObject({ result: { echo: { a: 1 } } });
    await expect(callAgent(node, 'slow')).rejects.toThrow();
    expect(await ended).toBe(0);
  });

  it('says 503 for the drain delay before it drains', async () => {
    await using node = await PatchbayProcess.start({ dataDir, env: { PATCHBAY_DRAIN_DELAY_SECONDS: '2' } });
    const ended = node.stop('SIGTERM');
    await eventually(async () => (await fetch(`${node.url}/readyz`)).status === 503);
    expect((await fetch(`${node.url}/agents`)).status).toBe(200);
    expect(await ended).toBe(0);
  });

  it('gives calls in flight the drain seconds, and then ends', async () => {
    await using agent = await startScriptedAgent({ kind: 'silent' });
    await using node = await PatchbayProcess.start({ dataDir, env: { PATCHBAY_DRAIN_SECONDS: '1' } });
    await registerAgent(node, 'silent', agent.url);
    const inFlight = callAgent(node, 'silent').catch((error: unknown) => error);
    await eventually(() => agent.requests.length === 1);
    const stoppingAt = performance.now();
    expect(await node.stop('SIGTERM')).toBe(0);
    expect(performance.now() - stoppingAt).toBeLessThan(4_000);
    await inFlight;
  });

  it('ends at once on a second signal, but not on the echo of the first', async () => {
    await using agent = await startScriptedAgent({ kind: 'silent' });
    await using node = await PatchbayProcess.start({ dataDir, env: { PATCHBAY_DRAIN_SECONDS: '60' } });
    await registerAgent(node, 'silent', agent.url);
    const inFlight = callAgent(node, 'silent').catch((error: unknown) => error);
    await eventually(() => agent.requests.length === 1);
    node.child.kill('SIGINT');
    node.child.kill('SIGINT');
    await eventually(() => node.output.includes('"draining"'));
    expect(node.child.exitCode).toBeNull();
    const exitCode = await eventually(
      () => {
        node.child.kill('SIGINT');
        return node.child.exitCode;
      },
      { withinMs: 2_000, everyMs: 100 },
    );
    expect(exitCode).toBe(1);
    await inFlight;
  });

  it('takes a free port for metrics when 8080 is in use and nobody chose it', async () => {
    // When another program has it already, so much the better.
    await using _blocker = await startScriptedAgent({ kind: 'echo' }, { port: 8080 }).catch(() => undefined);
    await using node = await PatchbayProcess.start({ dataDir, env: { PATCHBAY_METRICS_PORT: '' } });
    expect(node.output).toContain('(port 8080 is in use)');
    const [, metricsUrl = ''] = /metrics +(http:\S+)/.exec(node.output) ?? [];
    expect(await (await fetch(metricsUrl)).text()).toContain('process_resident_memory_bytes');
  });
});
