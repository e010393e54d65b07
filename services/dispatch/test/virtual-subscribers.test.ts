import { BusHeader } from '@patchbay/bus';
import type { Delivery, Exchange } from '@patchbay/bus';
import { eventually, startScriptedAgent } from '@patchbay/testkit';
import { describe, expect, test } from 'vitest';
import { DispatchRig, errorOf, request } from './dispatch-rig.js';
import type { RigCall } from './dispatch-rig.js';

describe('a virtual subscriber', () => {
  test('is there for agents known before the start, and for those that come later', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig();
    expect(rig.dispatch.subscribers()).toBe(0);
    rig.register('early-01', agent.url);
    rig.register('later-01', agent.url);
    rig.register('later-01', `${agent.url}again`);
    expect(rig.dispatch.subscribers()).toBe(2);
    expect(rig.bus.stats().subscriptions).toBe(3);
    await rig.call('early-01', request('message/send'));
    await rig.call('later-01', request('message/send'));
  });

  test('ends with the agent: no new calls, the ones in hand are finished', async () => {
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 300 });
    await using rig = new DispatchRig();
    rig.register('gone-01', agent.url);
    const inHand = rig.call('gone-01', request('message/send'));
    await eventually(() => agent.inHand === 1);
    rig.deregister('gone-01');
    expect((await rig.refusal('gone-01', request('message/send'))).code).toBe('no_dispatcher');
    expect((await inHand).body.length).toBeGreaterThan(0);
    expect(agent.requests).toHaveLength(1);
  });

  test('comes back with the agent while its old calls are still in hand', async () => {
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 300 });
    await using rig = new DispatchRig();
    rig.register('back-01', agent.url);
    const first = rig.call('back-01', request('message/send', {}, 1));
    await eventually(() => agent.inHand === 1);
    rig.deregister('back-01');
    rig.register('back-01', agent.url);
    const second = rig.call('back-01', request('message/send', {}, 2));
    expect(await Promise.all([first, second])).toHaveLength(2);
    expect(rig.dispatch.subscribers()).toBe(1);
  });

  test('calls an agent named by a header on the subject of its node', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig();
    rig.register('echo-01', agent.url);
    const headers = { [BusHeader.agent]: 'echo-01' };
    const subject = rig.subjects.dispatchNode('node-1');
    const reply = await rig.bus.request(subject, Buffer.from(request('x')), { timeoutMs: 1_000, headers });
    expect(JSON.parse(Buffer.from(reply.body).toString())).toMatchObject({ id: 1 });
  });

  test('is cheap: 20,000 agents', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig();
    const before = process.memoryUsage().heapUsed;
    const started = performance.now();
    for (let n = 0; n < 20_000; n += 1) rig.register(`agent-${n}`, agent.url);
    expect(performance.now() - started).toBeLessThan(2_000);
    // Records included; the subscriptions themselves are a few hundred bytes each.
    expect((process.memoryUsage().heapUsed - before) / 20_000).toBeLessThan(5_000);
    await rig.call('agent-19999', request('message/send'));
  });
});

describe('the concurrency limit', () => {
  test('refuses the call over it at once, for unary calls and streams together, and for each agent alone', async () => {
    await using agent = await startScriptedAgent({ kind: 'silent' });
    await using rig = new DispatchRig();
    rig.register('busy-01', agent.url);
    rig.register('other-01', agent.url);
    const leaving: AbortController[] = [];
    const options = (): RigCall => {
      const controller = new AbortController();
      leaving.push(controller);
      return { timeoutMs: 60_000, signal: controller.signal };
    };
    const held = Array.from({ length: 100 }, (_, n) => {
      return n % 2 === 0
        ? rig.refusal('busy-01', request('message/send', {}, n), options())
        : rig.readAll('busy-01', request('message/stream', {}, n), options());
    });
    await eventually(() => agent.inHand === 100);
    const started = performance.now();
    const error = await rig.refusal('busy-01', request('message/send', {}, 'over'));
    expect(performance.now() - started).toBeLessThan(100);
    expect(error.code).toBe('concurrency_exceeded');
    expect(error.body).toEqual({
      jsonrpc: '2.0',
      id: 'over',
      error: { code: -32603, message: 'internal error: concurrency limit exceeded' },
    });
    expect((await rig.readAll('busy-01', request('message/stream'))).error?.code).toBe('concurrency_exceeded');
    const other = rig.refusal('other-01', request('message/send'), options());
    await eventually(() => agent.inHand === 101);
    for (const controller of leaving) controller.abort();
    await Promise.all([...held, other]);
    agent.play({ kind: 'echo' });
    await rig.call('busy-01', request('message/send'));
  });

  test.each([
    ['a refused connection', 'http://127.0.0.1:1/', undefined],
    ['an error of HTTP', undefined, { kind: 'error', status: 500 }],
    ['HTML', undefined, { kind: 'html' }],
    ['a reset', undefined, { kind: 'dying', when: 'mid-reply' }],
    ['a reply too large', undefined, { kind: 'oversize', bytes: 20_000 }],
    ['a broken stream', undefined, { kind: 'stream', events: [{ data: 'x' }], finally: 'reset' }],
    ['a deadline', undefined, { kind: 'silent' }],
  ] as const)('gives the slot back after %s', async (_, url, script) => {
    await using agent = await startScriptedAgent(script ?? { kind: 'echo' });
    await using rig = new DispatchRig({ agentConcurrency: 1, maxResponseBytes: 10_000 });
    rig.register('one-01', url ?? agent.url);
    for (let round = 0; round < 3; round += 1) {
      const { code } = await rig.refusal('one-01', request('message/send'), { timeoutMs: 200 });
      expect(code).not.toBe('concurrency_exceeded');
      const { error } = await rig.readAll('one-01', request('message/stream'), { timeoutMs: 200 });
      expect(error?.code).not.toBe('concurrency_exceeded');
    }
    expect(rig.dispatch.inHand()).toBe(0);
  });

  test('a hundred calls one after the other, and twenty at once, all pass', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    await using rig = new DispatchRig({ agentConcurrency: 20 });
    rig.register('echo-01', agent.url);
    for (let n = 0; n < 100; n += 1) await rig.call('echo-01', request('message/send', {}, n));
    await Promise.all(Array.from({ length: 20 }, (_, n) => rig.call('echo-01', request('message/send', {}, n))));
    expect(agent.requests).toHaveLength(120);
  });
});

describe('draining', () => {
  test('waits for the calls in hand, and takes no new ones', async () => {
    await using agent = await startScriptedAgent({ kind: 'slow', ms: 300 });
    await using rig = new DispatchRig();
    rig.register('slow-01', agent.url);
    const call = rig.call('slow-01', request('message/send'));
    await eventually(() => agent.inHand === 1);
    const drained = rig.dispatch.drain(5_000);
    expect((await rig.refusal('slow-01', request('message/send'))).code).toBe('no_dispatcher');
    rig.register('late-01', agent.url);
    expect((await rig.refusal('late-01', request('message/send'))).code).toBe('no_dispatcher');
    expect((await call).body.length).toBeGreaterThan(0);
    await drained;
    await eventually(() => agent.openConnections === 0);
  });

  test('fails what is left when its time is over, streams too, of agents that have left as well', async () => {
    await using agent = await startScriptedAgent({ kind: 'silent' });
    await using rig = new DispatchRig();
    rig.register('stuck-01', agent.url);
    rig.register('left-01', agent.url);
    const unary = rig.refusal('stuck-01', request('message/send'), { timeoutMs: 60_000 });
    const stream = rig.readAll('stuck-01', request('message/stream'), { timeoutMs: 60_000 });
    const left = rig.refusal('left-01', request('message/send', {}, 5), { timeoutMs: 60_000 });
    await eventually(() => agent.inHand === 3);
    rig.deregister('left-01');
    const started = performance.now();
    await rig.dispatch.drain(200);
    expect(performance.now() - started).toBeLessThan(1_000);
    expect((await unary).code).toBe('draining');
    expect((await stream).error?.code).toBe('draining');
    expect((await left).body).toMatchObject({ id: 5, error: { code: -32603 } });
    await eventually(() => agent.openConnections === 0);
    expect(rig.dispatch.inHand()).toBe(0);
  });

  test('twice is the same as once', async () => {
    await using rig = new DispatchRig();
    expect(rig.dispatch.drain(10)).toBe(rig.dispatch.drain(10));
    await rig.dispatch.drain(10);
  });
});

/** An exchange as the adapter of a message system makes it for such a client. */
function plainDelivery(body: string): { delivery: Delivery; said: string[] } {
  const said: string[] = [];
  const exchange: Exchange = {
    wants: 'any',
    deadlineMs: performance.now() + 5_000,
    signal: new AbortController().signal,
    confirm: () => Promise.resolve(true),
    reply: (reply) => void said.push(`reply ${Buffer.from(reply).toString()}`),
    write: async (part) => void said.push(`part ${Buffer.from(part).toString()}`),
    end: () => void said.push('end'),
    fail: (code, message, error) => void said.push(`${code} ${message} ${Buffer.from(error ?? []).toString()}`),
  };
  return { delivery: { subject: 'a2a.x', body: Buffer.from(body), headers: {}, exchange }, said };
}

describe('a plain client, which cannot say what it waits for', () => {
  test('gets one reply or a stream as the method says', async () => {
    await using agent = await startScriptedAgent({ kind: 'echo' });
    const handlers = new Map<string, (delivery: Delivery) => unknown>();
    await using rig = new DispatchRig();
    const { bus } = rig;
    const spied = Object.assign(Object.create(bus) as typeof bus, {
      subscribe(subject: string, handler: (delivery: Delivery) => void) {
        handlers.set(subject, handler);
        return { subject, drain: () => Promise.resolve() };
      },
    });
    await using plain = new DispatchRig({ bus: spied });
    plain.register('x-01', agent.url);
    const handle = handlers.get('a2a.x-01');

    const unary = plainDelivery(request('message/send', { n: 1 }));
    handle?.(unary.delivery);
    await eventually(() => unary.said.length === 1);
    expect(unary.said).toEqual(['reply {"jsonrpc":"2.0","id":1,"result":{"echo":{"n":1}}}']);

    agent.play({ kind: 'stream', events: [{ name: 'task.done', data: 'x' }] });
    const stream = plainDelivery(request('message/stream'));
    handle?.(stream.delivery);
    await eventually(() => stream.said.length === 2);
    expect(stream.said).toEqual(['part x', 'end']);

    const garbage = plainDelivery('nonsense');
    handle?.(garbage.delivery);
    expect(garbage.said).toEqual([
      'parse_error invalid JSON {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: invalid JSON"}}',
    ]);
    expect(agent.requests).toHaveLength(2);

    // Published to nobody in particular: not a call.
    handle?.({ subject: 'a2a.x-01', body: Buffer.from(request('x')), headers: {}, exchange: undefined });
    expect(plain.dispatch.inHand()).toBe(0);
  });
});

describe('an unknown agent on a subject that is still served', () => {
  test('is not called: the directory has the word', async () => {
    await using rig = new DispatchRig();
    const headers = { [BusHeader.agent]: 'ghost-01' };
    const call = rig.bus.request(rig.subjects.dispatchNode('node-1'), Buffer.from(request('x', {}, 'g')), {
      timeoutMs: 1_000,
      headers,
    });
    expect((await errorOf(call)).body).toEqual({
      jsonrpc: '2.0',
      id: 'g',
      error: { code: -32002, message: 'agent not found: ghost-01' },
    });
  });
});
