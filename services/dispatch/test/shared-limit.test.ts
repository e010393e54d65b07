import { BusHeader, MemoryBus, RemoteError, Subjects } from '@patchbay/bus';
import type { Bus, Delivery, Exchange, Handler } from '@patchbay/bus';
import { Directory, Membership } from '@patchbay/directory';
import { silentLogger } from '@patchbay/telemetry';
import { eventually, startScriptedAgent } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import { DispatchRig, errorOf, request, rigWithAgent } from './dispatch-rig.js';

const subjects = new Subjects();

function memberOf(bus: Bus, nodeId: string): Membership {
  const membership = new Membership({
    bus,
    subjects,
    directory: new Directory(),
    nodeId,
    version: '0.1.0',
    services: ['dispatch'],
    logger: silentLogger(),
    onConflict: () => undefined,
  });
  membership.start();
  return membership;
}

/** A bus that tells which handler serves a subject. */
class OpenBus extends MemoryBus {
  readonly handlers = new Map<string, Handler>();

  override subscribe(...[subject, handler, options]: Parameters<MemoryBus['subscribe']>) {
    this.handlers.set(subject, handler);
    return super.subscribe(subject, handler, options);
  }

  /** A message that was on its way when its subscription was drained. */
  deliverLate(subject: string, delivery: Delivery): void {
    void this.handlers.get(subject)?.(delivery);
  }
}

/** A call whose end the test looks at. */
function lateCall(wants: Exchange['wants'], agentId: string) {
  const ended: { code?: string; node?: string | undefined; reply?: string }[] = [];
  const exchange: Exchange = {
    wants,
    deadlineMs: performance.now() + 5_000,
    signal: new AbortController().signal,
    confirm: () => Promise.resolve(true),
    reply: (body) => void ended.push({ reply: Buffer.from(body).toString() }),
    write: () => Promise.resolve(),
    end: () => undefined,
    fail: (code, _message, _body, headers) => void ended.push({ code, node: headers?.[BusHeader.node] }),
  };
  const body = Buffer.from(request('message/send'));
  return { ended, delivery: { subject: '', body, headers: { [BusHeader.agent]: agentId }, exchange } };
}

describe('a dispatch among others', () => {
  it('serves the queue when it has its share, and shares the limit with who comes', async () => {
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 2_000 });
    const bus = new MemoryBus();
    const first = memberOf(bus, 'node-1');
    await using rig = new DispatchRig({ memoryBus: bus, membership: first, settleMs: 300, agentConcurrency: 4 });
    rig.register('busy-01', agent.url);
    expect(rig.dispatch.subscribers()).toBe(0);
    await rig.dispatch.ready;
    expect(rig.dispatch.subscribers()).toBe(1);

    const second = memberOf(bus, 'node-2');
    await using other = new DispatchRig({
      memoryBus: bus,
      membership: second,
      settleMs: 300,
      agentConcurrency: 4,
      nodeId: 'node-2',
    });
    other.register('busy-01', agent.url);
    await other.dispatch.ready;
    const headers = { [BusHeader.agent]: 'busy-01' };
    for (const nodeId of ['node-1', 'node-2']) {
      const call = () =>
        bus.request(subjects.dispatchNode(nodeId), Buffer.from(request('message/send')), { timeoutMs: 5_000, headers });
      const taken = [call(), call()];
      const refused = await call().catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'concurrency_exceeded', headers: { [BusHeader.node]: nodeId } });
      expect(refused).toBeInstanceOf(RemoteError);
      await Promise.all(taken);
    }
    expect(agent.maxInHand).toBe(2);
    await Promise.all([first.stop(), second.stop()]);
  });

  it('says how much room it has, and nothing once it is drained', async () => {
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 1_500 });
    const bus = new MemoryBus();
    const membership = memberOf(bus, 'node-1');
    await using rig = new DispatchRig({ memoryBus: bus, membership, settleMs: 0, agentConcurrency: 4 });
    rig.register('busy-01', agent.url);
    const said = (): { epoch: number; free: number } => {
      const beat = membership.members()[0]?.beat;
      return { epoch: beat?.epoch ?? 0, free: beat?.free_slots ?? -1 };
    };
    const call = rig.call('busy-01', request('message/send'));
    await eventually(() => said().free === 3);
    expect(said().epoch).toBeGreaterThan(0);
    const draining = rig.dispatch.drain(5_000);
    expect(said().epoch).toBeGreaterThan(0);
    await call;
    await draining;
    expect(said()).toEqual({ epoch: 0, free: 0 });
    await membership.stop();
  });

  it('sends late calls of fronts elsewhere while it drains, and serves those of plain clients', async () => {
    const bus = new OpenBus();
    await using parts = await rigWithAgent('echo-01', { kind: 'echo' }, { memoryBus: bus });
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 300 });
    parts.rig.register('slow-01', agent.url);
    const inHand = parts.rig.call('slow-01', request('message/send'));
    const draining = parts.rig.dispatch.drain(5_000);
    const [queued, direct, plain] = [
      lateCall('unary', 'echo-01'),
      lateCall('stream', 'echo-01'),
      lateCall('any', 'echo-01'),
    ];
    bus.deliverLate(subjects.agent('echo-01'), queued.delivery);
    bus.deliverLate(subjects.dispatchNode('node-1'), direct.delivery);
    bus.deliverLate(subjects.agent('echo-01'), plain.delivery);
    expect([queued.ended, direct.ended]).toEqual([
      [{ code: 'draining', node: 'node-1' }],
      [{ code: 'draining', node: 'node-1' }],
    ]);
    await eventually(() => plain.ended.length > 0);
    expect(plain.ended[0]?.reply).toContain('"echo"');
    await inHand;
    await draining;
  });

  it('does not say of a call that it cut that nothing was sent', async () => {
    await using parts = await rigWithAgent('silent-01', { kind: 'silent' });
    const call = parts.rig.call('silent-01', request('message/send'));
    const refusal = call.catch((error: unknown) => error);
    await eventually(() => parts.agent.inHand === 1);
    await parts.rig.dispatch.drain(0);
    expect(await refusal).toMatchObject({ code: 'draining', headers: {} });
    expect((await errorOf(call)).code).toBe('draining');
  });
});
