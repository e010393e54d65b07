import type { Exchange } from '@patchbay/bus';
import { DisconnectedError, NatsBus } from '@patchbay/bus';
import { eventually, startNatsCluster, startNatsServer } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';
import { startBusProcess } from './bus-process.js';
import {
  echo,
  errorOf,
  exchangeOf,
  isIdle,
  NOTHING,
  pass,
  pattern,
  readAll,
  serve,
  text,
  words,
} from './contract-kit.js';
import { createNatsPair } from './nats-pair.js';

/** Milliseconds until `promise` fails, and its error. */
async function failure(promise: Promise<unknown>): Promise<{ code: string; ms: number }> {
  const begin = performance.now();
  const { code } = await errorOf(promise);
  return { code, ms: performance.now() - begin };
}

describe('NatsBus when the server fails', () => {
  it('fails what is in flight at once when the server is killed, and goes on when it is back', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    const { caller } = pair;
    const exchanges: Exchange[] = [];
    await serve(pair, 'f.hang', (delivery) => void exchanges.push(exchangeOf(delivery)));
    await serve(pair, 'f.echo', echo);
    const levels: boolean[] = [];
    caller.onStatus((isUp) => levels.push(isUp));
    const request = failure(caller.request('f.hang', NOTHING, { timeoutMs: 30_000 }));
    const stream = failure(readAll(caller.stream('f.hang', NOTHING, { timeoutMs: 30_000 })));
    await eventually(() => exchanges.length === 2);
    const [first] = exchanges;
    expect(first?.signal.aborted).toBe(false);
    const begin = performance.now();
    await server.kill();
    for (const failed of [await request, await stream]) expect(failed.code).toBe('bus_unavailable');
    await eventually(() => first?.signal.aborted);
    expect(performance.now() - begin).toBeLessThan(1_000);
    expect(caller.isUp).toBe(false);
    expect(await errorOf(caller.request('f.echo', NOTHING, { timeoutMs: 30_000 }))).toBeInstanceOf(DisconnectedError);
    expect(await errorOf(readAll(caller.stream('f.echo', NOTHING, { timeoutMs: 30_000 })))).toBeInstanceOf(
      DisconnectedError,
    );
    expect(await errorOf(caller.flush())).toBeInstanceOf(DisconnectedError);
    caller.publish('f.lost', NOTHING);
    expect(caller.stats()).toMatchObject({ droppedMessages: 1 });
    await server.start();
    await eventually(() => caller.isUp && pair.responder.isUp);
    await pair.settle();
    expect(words(await caller.request('f.echo', text('back'), { timeoutMs: 5_000 }))).toBe('back');
    expect(levels).toEqual([false, true]);
    await eventually(() => isIdle(pair));
  });

  it('notices a server that stopped, and heals when it goes on', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    const { caller } = pair;
    await serve(pair, 'f.hang', async (delivery) => {
      if (exchangeOf(delivery).wants === 'stream') await exchangeOf(delivery).write(text('one'));
    });
    await serve(pair, 'f.echo', echo);
    const request = caller.request('f.hang', NOTHING, { timeoutMs: 30_000 });
    const stream = readAll(caller.stream('f.hang', NOTHING, { timeoutMs: 30_000 }));
    await pass(300);
    server.pause();
    for (const failed of await Promise.all([failure(request), failure(stream)])) {
      expect(['bus_unavailable', 'node_lost']).toContain(failed.code);
      expect(failed.ms).toBeLessThan(3_500);
    }
    await eventually(() => !caller.isUp && !pair.responder.isUp);
    await pass(3_000);
    server.resume();
    await eventually(() => caller.isUp && pair.responder.isUp, { withinMs: 5_000 });
    await pair.settle();
    expect(words(await caller.request('f.echo', text('back'), { timeoutMs: 5_000 }))).toBe('back');
    await eventually(() => isIdle(pair));
  });

  it('leaves a stopped server for another one, however much it has written to it', async () => {
    await using cluster = await startNatsCluster(3);
    const [first, second] = cluster.servers;
    if (first === undefined || second === undefined) throw new Error('the cluster has no servers');
    const responder = await NatsBus.connect({ servers: second.url });
    responder.subscribe('f.echo', echo, { queue: 'q' });
    await responder.flush();
    const caller = await NatsBus.connect({ servers: first.url });
    await eventually(() => caller.request('f.echo', NOTHING, { timeoutMs: 1_000 }));
    first.pause();
    // More than the sockets between them hold, so that closing properly would wait for ever.
    for (let index = 0; index < 100; index++) caller.publish('f.bulk', pattern(500_000));
    await eventually(() => !caller.isUp, { withinMs: 3_500 });
    await eventually(() => caller.isUp, { withinMs: 10_000 });
    expect(words(await caller.request('f.echo', text('elsewhere'), { timeoutMs: 5_000 }))).toBe('elsewhere');
    await Promise.all([caller.close(), responder.close()]);
  });

  it('keeps its calls when one of three servers that it does not use is killed', async () => {
    await using cluster = await startNatsCluster(3);
    await using pair = await createNatsPair(cluster.urls);
    await serve(pair, 'f.echo', echo);
    await cluster.servers[2]?.kill();
    for (let index = 0; index < 200; index++) {
      await pair.caller.request('f.echo', NOTHING, { timeoutMs: 2_000 });
    }
  });

  it('waits for a server that is not there yet, until it is told to stop', async () => {
    await using server = await startNatsServer();
    await server.kill();
    const reasons: string[] = [];
    const options = { servers: server.url, onWaiting: (reason: string) => void reasons.push(reason) };
    const waiting = NatsBus.connect(options);
    const given = failure(NatsBus.connect({ servers: server.url, signal: AbortSignal.timeout(300) }));
    expect((await given).code).toBe('bus_unavailable');
    expect(reasons).toHaveLength(1);
    await server.start();
    const bus = await waiting;
    expect(bus.isUp).toBe(true);
    await bus.close();
  });

  it('says at once that its credentials are refused, without showing them', async () => {
    await using server = await startNatsServer({ config: 'authorization { user: "u", password: "right/@" }' });
    const withPassword = (pass: string): string => server.url.replace('//', `//u:${pass}@`);
    const error = await errorOf(NatsBus.connect({ servers: withPassword('wrong') }));
    expect(error.code).toBe('bus_unavailable');
    expect(error.message).toMatch(/authorization/i);
    expect(error.message).not.toContain('wrong');
    const security = { user: 'u', pass: 'right/@' };
    for (const options of [{ servers: `${withPassword('right%2F%40')}, ` }, { servers: server.url, security }]) {
      const bus = await NatsBus.connect(options);
      await bus.close();
    }
  });

  it('keeps 100,000 subscriptions over a reconnect', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    const begin = performance.now();
    for (let index = 0; index < 100_000; index++) pair.responder.subscribe(`a2a.n-${index}`, echo, { queue: 'q' });
    await pair.responder.flush();
    expect(performance.now() - begin).toBeLessThan(10_000);
    await pair.caller.request('a2a.n-99999', NOTHING, { timeoutMs: 5_000 });
    await server.kill();
    await server.start();
    await eventually(() => pair.caller.isUp && pair.responder.isUp, { withinMs: 10_000 });
    await pair.settle();
    await pair.caller.request('a2a.n-0', NOTHING, { timeoutMs: 5_000 });
    await pair.caller.request('a2a.n-99999', NOTHING, { timeoutMs: 5_000 });
  });
});

describe('NatsBus when another node fails', () => {
  it('ends calls to a stopped node as node_lost, and no others', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    await serve(pair, 'p.echo', echo);
    await using node = await startBusProcess(server.url, 'serve');
    const { caller } = pair;
    const hanging = caller.request('p.hang', NOTHING, { timeoutMs: 30_000 });
    hanging.catch(() => undefined);
    const flood = caller.stream('p.flood', NOTHING, { timeoutMs: 30_000 })[Symbol.asyncIterator]();
    await flood.next();
    await pass(500);
    node.signal('SIGSTOP');
    const calls = Array.from({ length: 60 }, async () => {
      const begin = performance.now();
      const code = await caller.request('p.echo', NOTHING, { timeoutMs: 30_000 }).then(
        () => 'ok',
        (error: { code: string }) => error.code,
      );
      return { code, ms: performance.now() - begin };
    });
    const outcomes = await Promise.all(calls);
    const lost = outcomes.filter(({ code }) => code === 'node_lost');
    expect(lost.length).toBeGreaterThan(5);
    expect(outcomes.filter(({ code }) => code === 'ok')).toHaveLength(60 - lost.length);
    for (const { code, ms } of outcomes) expect(ms).toBeLessThan(code === 'ok' ? 500 : 2_000);
    const readFlood = async (): Promise<void> => {
      while (!(await flood.next()).done);
    };
    for (const failed of await Promise.all([failure(hanging), failure(readFlood())])) {
      expect(failed.code).toBe('node_lost');
      expect(failed.ms).toBeLessThan(3_500);
    }
    node.signal('SIGCONT');
    await eventually(() => isIdle(pair));
  });

  it('has nothing done late by a node that was stopped: its callers have given up', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    await using node = await startBusProcess(server.url, 'serve');
    const { caller } = pair;
    const notes = async (): Promise<string> => words(await caller.request('p.notes', NOTHING, { timeoutMs: 5_000 }));
    await caller.request('p.note', NOTHING, { timeoutMs: 5_000 });
    node.signal('SIGSTOP');
    const calls = Array.from({ length: 50 }, () => failure(caller.request('p.note', NOTHING, { timeoutMs: 5_000 })));
    for (const failed of await Promise.all(calls)) expect(failed.code).toBe('node_lost');
    // One that still waits when the node goes on is served, like those that come after it.
    const waiting = caller.request('p.note', text('waiting'), { timeoutMs: 5_000 });
    node.signal('SIGCONT');
    expect(words(await waiting)).toBe('waiting');
    expect(words(await caller.request('p.note', text('new'), { timeoutMs: 5_000 }))).toBe('new');
    expect(await notes()).toBe('3');
    await eventually(() => isIdle(pair));
  });

  it('ends a stream of a killed node, and never as if it were complete', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    await using node = await startBusProcess(server.url, 'serve');
    const reading = readAll(pair.caller.stream('p.flood', NOTHING, { timeoutMs: 30_000 }));
    await pass(300);
    node.signal('SIGKILL');
    const failed = await failure(reading);
    expect(failed.code).toBe('node_lost');
    expect(failed.ms).toBeLessThan(3_500);
  });

  it('lets nobody wait for a node that stopped with large requests on their way to it', async () => {
    await using server = await startNatsServer();
    await using pair = await createNatsPair([server.url]);
    await serve(pair, 'f.echo', echo);
    await using node = await startBusProcess(server.url, 'serve');
    const body = pattern(5_000_000);
    expect((await pair.caller.request('p.alone', body, { timeoutMs: 10_000 })).body.length).toBe(body.length);
    const large = Array.from({ length: 40 }, () =>
      failure(pair.caller.request('p.alone', body, { timeoutMs: 20_000 })),
    );
    await pass(20);
    node.signal('SIGSTOP');
    let slowestMs = 0;
    for (let index = 0; index < 200; index++) {
      const begin = performance.now();
      await pair.caller.request('f.echo', NOTHING, { timeoutMs: 5_000 });
      slowestMs = Math.max(slowestMs, performance.now() - begin);
    }
    expect(slowestMs).toBeLessThan(1_000);
    for (const failed of await Promise.all(large.map((call) => call.catch(() => undefined)))) {
      if (failed === undefined) continue;
      expect(failed.code).toBe('node_lost');
      expect(failed.ms).toBeLessThan(6_000);
    }
    expect(pair.caller.isUp).toBe(true);
  });

  it.each(['SIGSTOP', 'SIGKILL'] as const)(
    'cancels exchanges with a caller that got %s, and serves others',
    async (signal) => {
      await using server = await startNatsServer();
      await using pair = await createNatsPair([server.url]);
      const signals: AbortSignal[] = [];
      const huge = pattern(10_000_000);
      await serve(pair, 'r.huge', (delivery) => {
        signals.push(exchangeOf(delivery).signal);
        exchangeOf(delivery).reply(huge);
      });
      await serve(pair, 'r.flood', async (delivery) => {
        signals.push(exchangeOf(delivery).signal);
        try {
          for (;;) await exchangeOf(delivery).write(huge.subarray(0, 50_000));
        } catch {
          // The caller is gone, which is what this is about.
        }
      });
      await serve(pair, 'f.echo', echo);
      await using node = await startBusProcess(server.url, 'call');
      await eventually(() => signals.length > 100);
      node.signal(signal);
      const begin = performance.now();
      let slowestMs = 0;
      while (performance.now() - begin < 2_000) {
        const start = performance.now();
        await pair.caller.request('f.echo', NOTHING, { timeoutMs: 5_000 });
        slowestMs = Math.max(slowestMs, performance.now() - start);
        await pass(5);
      }
      expect(slowestMs).toBeLessThan(1_000);
      await eventually(() => pair.responder.stats().exchanges === 0, { withinMs: 8_000 });
      await eventually(() => isIdle(pair), { withinMs: 8_000 });
    },
  );
});
