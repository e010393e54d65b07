import { BusHeader, NatsBus } from '@patchbay/bus';
import type { Handler } from '@patchbay/bus';
import { eventually, startNatsServer } from '@patchbay/testkit';
import type { NatsServer } from '@patchbay/testkit';
import { connect, headers, RequestStrategy } from 'nats';
import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BusPair } from './bus-adapter.js';
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

let server: NatsServer;
let plain: NatsConnection;

beforeAll(async () => {
  server = await startNatsServer();
  plain = await connect({ servers: server.url });
});

afterAll(async () => {
  await plain.close();
  await server.stop();
});

describe('a plain NATS client', () => {
  it('gets the reply of a handler that does not know who asks', async () => {
    await using pair = await createNatsPair([server.url]);
    const seen: unknown[] = [];
    await serve(pair, 'a2a.echo-01', (delivery) => {
      const exchange = exchangeOf(delivery);
      seen.push(exchange.wants, { ...delivery.headers }, Math.round((exchange.deadlineMs - performance.now()) / 1_000));
      exchange.reply(delivery.body, { 'A2A-Version': '1.0' });
    });
    const sent = headers();
    sent.set('A2A-Version', '1.0');
    sent.set(BusHeader.timeoutMs, '7000');
    const reply = await plain.request('a2a.echo-01', text('hello'), { timeout: 5_000, headers: sent });
    expect(reply.string()).toBe('hello');
    expect(reply.headers?.get('A2A-Version')).toBe('1.0');
    expect(reply.headers?.has(BusHeader.frame)).toBe(false);
    expect(seen).toEqual(['any', { 'A2A-Version': '1.0' }, 7]);
    await plain.request('a2a.echo-01', NOTHING, { timeout: 5_000 });
    expect(seen.slice(3)).toEqual(['any', {}, 30]);
    await eventually(() => isIdle(pair));
  });

  it('cannot have an answer published under the subjects of the services', async () => {
    const complaints: string[] = [];
    await using pair = await createNatsPair([server.url], { onComplaint: (code) => complaints.push(code) });
    let calls = 0;
    await serve(pair, 'a2a.echo-02', (delivery) => {
      calls += 1;
      delivery.exchange?.reply(delivery.body);
    });
    const forged: string[] = [];
    const watching = plain.subscribe('patchbay.>', { callback: (_error, message) => forged.push(message.subject) });
    await plain.flush();
    for (const speaksFrames of [false, true]) {
      const sent = headers();
      if (speaksFrames) sent.set(BusHeader.accept, 'frames');
      for (const reply of ['patchbay.replication', 'a2a.echo-02', '$SYS.REQ.X']) {
        plain.publish('a2a.echo-02', text('[]'), { reply, headers: sent });
      }
    }
    await eventually(() => complaints.length === 6);
    expect((await plain.request('a2a.echo-02', text('ok'), { timeout: 5_000 })).string()).toBe('ok');
    expect([calls, forged]).toEqual([1, []]);
    watching.unsubscribe();
  });

  it('gets one message for each part, and an empty one marked as the end', async () => {
    await using pair = await createNatsPair([server.url]);
    await serve(pair, 'a2a.stream', async (delivery) => {
      const exchange = exchangeOf(delivery);
      for (let part = 0; part < 500; part++) await exchange.write(pattern(10_000), { 'X-Part': String(part) });
      exchange.end();
    });
    const options = { strategy: RequestStrategy.SentinelMsg, maxWait: 10_000 };
    const got: (string | undefined)[] = [];
    let end: string | undefined;
    for await (const message of await plain.requestMany('a2a.stream', NOTHING, options)) {
      if (message.data.length === 0) end = message.headers?.get(BusHeader.frame);
      else got.push(message.headers?.get('X-Part'));
    }
    expect(got).toEqual(Array.from({ length: 500 }, (_, part) => String(part)));
    expect(end).toBe('end');
    await eventually(() => isIdle(pair));
  });

  it('gets errors as headers with the body that the responder words', async () => {
    await using pair = await createNatsPair([server.url]);
    await serve(pair, 'a2a.fail', (delivery) => {
      if (delivery.body.length > 0) throw new Error('secret');
      exchangeOf(delivery).fail('agent_unreachable', 'no\nway', text('{"error":{}}'));
    });
    const reply = await plain.request('a2a.fail', NOTHING, { timeout: 5_000 });
    expect(reply.headers?.get(BusHeader.error)).toBe('agent_unreachable');
    expect(reply.headers?.get(BusHeader.errorMessage)).toBe('no way');
    expect(reply.string()).toBe('{"error":{}}');
    const thrown = await plain.request('a2a.fail', text('x'), { timeout: 5_000 });
    expect(thrown.headers?.get(BusHeader.errorMessage)).toBe('internal error');
  });

  it('is told that a reply is too large for it', async () => {
    await using pair = await createNatsPair([server.url]);
    await serve(pair, 'a2a.large', async (delivery) => {
      if (delivery.body.length === 0) exchangeOf(delivery).reply(pattern(2_000_000));
      else await exchangeOf(delivery).write(pattern(2_000_000));
    });
    for (const body of [NOTHING, text('stream')]) {
      const reply = await plain.request('a2a.large', body, { timeout: 5_000 });
      expect(reply.headers?.get(BusHeader.error)).toBe('response_too_large');
    }
    await eventually(() => isIdle(pair));
  });

  it('may vanish in the middle of a stream', async () => {
    await using pair = await createNatsPair([server.url]);
    let writes = 0;
    let end: string | undefined;
    await serve(pair, 'a2a.endless', async (delivery) => {
      try {
        for (;;) {
          await exchangeOf(delivery).write(text('tick'));
          writes++;
          await pass(5);
        }
      } catch (error) {
        end = (error as { code: string }).code;
      }
    });
    const guest = await connect({ servers: server.url });
    const stream = await guest.requestMany('a2a.endless', NOTHING, { maxWait: 60_000 });
    void stream;
    await eventually(() => writes > 5);
    await guest.close();
    await eventually(() => end === 'cancelled');
    await eventually(() => isIdle(pair));
  });

  it('may answer our requests, and sees our events', async () => {
    await using pair = await createNatsPair([server.url]);
    const seen: string[] = [];
    const events = plain.subscribe('patchbay.>', { callback: (_, message) => void seen.push(message.subject) });
    const service = plain.subscribe('x.service', { callback: (_, message) => void message.respond(message.data) });
    await plain.flush();
    expect(words(await pair.caller.request('x.service', text('hi'), { timeoutMs: 5_000 }))).toBe('hi');
    expect((await readAll(pair.caller.stream('x.service', text('hi'), { timeoutMs: 5_000 }))).map(words)).toEqual([
      'hi',
    ]);
    pair.caller.publish('patchbay.events.registered.echo-01', NOTHING);
    await eventually(() => seen.length === 1);
    await Promise.all([events.drain(), service.drain()]);
  });

  it('cannot break the bus with what it sends', async () => {
    await using pair = await createNatsPair([server.url]);
    await serve(pair, 'a2a.hardy', echo);
    const inboxes: string[] = [];
    const watch = plain.subscribe('_INBOX.>', { callback: (_, message) => void inboxes.push(message.subject) });
    await plain.flush();
    await pair.caller.request('a2a.hardy', pattern(300_000), { timeoutMs: 5_000 });
    await eventually(() => inboxes.length > 3);
    await watch.drain();
    const connections = new Set(inboxes.map((inbox) => inbox.slice(0, inbox.lastIndexOf('.'))));
    for (const kind of ['accept', 'part', 'data', 'end', 'error', 'credit', 'cancel', 'alive', 'nonsense', '']) {
      for (const number of ['1', '-5', '1e99', 'x', '']) {
        const sent = headers();
        for (const name of [BusHeader.sequence, BusHeader.credit, BusHeader.sent, BusHeader.timeoutMs])
          sent.set(name, number);
        sent.set(BusHeader.frame, kind);
        if (number === '1') sent.set(BusHeader.accept, 'frames');
        for (const subject of [
          'a2a.hardy',
          ...[...connections].flatMap((name) => [`${name}.-`, `${name}.1`, `${name}.x`]),
        ]) {
          plain.publish(subject, text('a b \u0000'), { headers: sent });
          plain.publish(subject, text('a b'), { headers: sent, reply: 'noreply' });
          plain.publish(subject, text('a b'), { headers: sent, reply: 'x.y' });
        }
      }
    }
    await plain.flush();
    expect(words(await pair.caller.request('a2a.hardy', text('well'), { timeoutMs: 5_000 }))).toBe('well');
    expect(pair.handlerErrors.length).toBeLessThanOrEqual(200);
  });
});

describe('a server with a small max_payload', () => {
  it('carries large requests and replies, and refuses heads that cannot fit', async () => {
    await using small = await startNatsServer({ maxPayload: 16_384 });
    await using pair = await createNatsPair([small.url]);
    await serve(pair, 'm.echo', echo);
    for (const length of [8_000, 16_000, 16_384, 65_536, 1_000_000]) {
      const body = pattern(length);
      const reply = await pair.caller.request('m.echo', body, { timeoutMs: 10_000 });
      expect(Buffer.compare(reply.body, body)).toBe(0);
    }
    const large = { 'X-Large': 'x'.repeat(20_000) };
    const error = await errorOf(pair.caller.request('m.echo', NOTHING, { timeoutMs: 1_000, headers: large }));
    expect(error.code).toBe('request_too_large');
    await serve(pair, 'm.head', (delivery) => {
      if (delivery.body.length === 0) exchangeOf(delivery).reply(NOTHING, large);
      else exchangeOf(delivery).reply(pattern(100_000), large);
    });
    for (const body of [NOTHING, text('x')]) {
      const failed = await errorOf(pair.caller.request('m.head', body, { timeoutMs: 5_000 }));
      expect(failed.code).toBe('response_too_large');
    }
    expect(() => pair.caller.publish('m.x', pattern(20_000))).toThrow(/bytes/);
    await eventually(() => isIdle(pair));
  });
});

function connectBoth(localFirst: boolean): Promise<BusPair> {
  return createNatsPair([server.url], { localFirst });
}

function servedBy(name: string): Handler {
  return (delivery) => {
    exchangeOf(delivery).reply(text(name));
  };
}

async function ask(pair: BusPair, subject: string): Promise<string[]> {
  const names = new Set<string>();
  for (let index = 0; index < 50; index++) {
    names.add(words(await pair.caller.request(subject, NOTHING, { timeoutMs: 5_000 })));
    const parts = await readAll(pair.caller.stream(subject, NOTHING, { timeoutMs: 5_000 }));
    names.add(parts.map(words).join('+'));
  }
  return [...names].toSorted();
}

describe('local-first', () => {
  it('serves calls on its subjects in this process, and others over NATS', async () => {
    await using pair = await connectBoth(true);
    for (const subject of ['a2a.x', 'patchbay.y']) {
      pair.caller.subscribe(subject, servedBy('here'), { queue: 'q' });
      pair.responder.subscribe(subject, servedBy('there'), { queue: 'q' });
    }
    await pair.caller.flush();
    await pair.settle();
    expect(await ask(pair, 'a2a.x')).toEqual(['here']);
    expect(await ask(pair, 'patchbay.y')).toEqual(['here', 'there']);
  });

  it('can be turned off', async () => {
    await using pair = await connectBoth(false);
    pair.caller.subscribe('a2a.x', servedBy('here'), { queue: 'q' });
    pair.responder.subscribe('a2a.x', servedBy('there'), { queue: 'q' });
    await pair.caller.flush();
    await pair.settle();
    expect(await ask(pair, 'a2a.x')).toEqual(['here', 'there']);
  });

  it('does not count a subscription that drains, nor one without a queue', async () => {
    await using pair = await connectBoth(true);
    const local = pair.caller.subscribe('a2a.x', servedBy('here'), { queue: 'q' });
    pair.caller.subscribe('a2a.x', () => undefined);
    pair.responder.subscribe('a2a.x', servedBy('there'), { queue: 'q' });
    await pair.caller.flush();
    await pair.settle();
    expect(await ask(pair, 'a2a.x')).toEqual(['here']);
    await local.drain();
    expect(await ask(pair, 'a2a.x')).toEqual(['there']);
  });

  it('goes on without NATS', async () => {
    await using other = await startNatsServer();
    const bus = await NatsBus.connect({ servers: other.url });
    bus.subscribe('a2a.x', echo, { queue: 'q' });
    await bus.flush();
    await other.kill();
    await eventually(() => !bus.isUp);
    expect(words(await bus.request('a2a.x', text('still here'), { timeoutMs: 1_000 }))).toBe('still here');
    await bus.close();
  });

  it('lets plain publishers and other nodes reach the same handler', async () => {
    await using pair = await connectBoth(true);
    pair.caller.subscribe('a2a.x', servedBy('here'), { queue: 'q' });
    await pair.caller.flush();
    expect((await plain.request('a2a.x', NOTHING, { timeout: 5_000 })).string()).toBe('here');
    expect(words(await pair.responder.request('a2a.x', NOTHING, { timeoutMs: 5_000 }))).toBe('here');
  });
});
