import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { DispatchRig, request } from './dispatch-rig.js';

/** A rig with an agent that answers with the bytes it is told to. */
async function rigWithRaw(answer: (socket: Socket) => void): Promise<{ rig: DispatchRig } & AsyncDisposable> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // the gateway may close it first
    socket.once('data', () => answer(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const rig = new DispatchRig();
  rig.register('raw', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  return {
    rig,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      server.close();
    },
  };
}

const JSON_REPLY = '{"jsonrpc":"2.0","id":1,"result":{}}';
const STREAM_HEAD = 'Content-Type: text/event-stream\r\n\r\n';
const JSON_HEAD = 'Content-Type: application/json\r\n\r\n';

describe.each(['HTTP/1.1 200 OK\r\nConnection: close\r\n', 'HTTP/1.1 200 OK\r\n', 'HTTP/1.0 200 OK\r\n'])(
  'an agent whose reply ends with its connection: %j',
  (status) => {
    test('ends a stream by closing it', async () => {
      await using world = await rigWithRaw((socket) => socket.end(`${status}${STREAM_HEAD}data: 1\n\ndata: 2\n\n`));
      const { parts, error } = await world.rig.readAll('raw', request('message/stream'));
      expect(error).toBeUndefined();
      expect(parts).toHaveLength(2);
    });

    test('breaks a stream by resetting it, however whole its last event is', async () => {
      await using world = await rigWithRaw((socket) => {
        socket.write(`${status}${STREAM_HEAD}data: 1\n\n`, () => setTimeout(() => socket.resetAndDestroy(), 50));
      });
      const { parts, error } = await world.rig.readAll('raw', request('message/stream'));
      expect(parts).toHaveLength(1);
      expect(error).toMatchObject({ code: 'stream_broken', message: 'connection closed before the end of the reply' });
    });

    test('gives one reply by closing it, and none by resetting it', async () => {
      await using closing = await rigWithRaw((socket) => socket.end(status + JSON_HEAD + JSON_REPLY));
      expect(Buffer.from((await closing.rig.call('raw', request('message/send'))).body).toString()).toBe(JSON_REPLY);
      await using resetting = await rigWithRaw((socket) => {
        socket.write(status + JSON_HEAD + JSON_REPLY, () => setTimeout(() => socket.resetAndDestroy(), 50));
      });
      expect(await resetting.rig.refusal('raw', request('message/send'))).toMatchObject({
        code: 'agent_bad_reply',
        message: 'connection closed before the end of the reply',
      });
    });
  },
);

describe('an agent that does not speak HTTP/1.1 as it should', () => {
  test.each([
    ['100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n', 'agent answered 100 Continue, which nobody asked for'],
    [
      '101',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      'agent switched protocols, which nobody asked for',
    ],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n', 'not valid HTTP/1.1'],
    [
      'two framings',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
      'not valid HTTP/1.1',
    ],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n', 'not valid HTTP/1.1'],
  ])('with %s is told so', async (_, head, words) => {
    await using world = await rigWithRaw((socket) => socket.write(head + JSON_REPLY));
    const error = await world.rig.refusal('raw', request('message/send'));
    expect(error).toMatchObject({ code: 'agent_bad_reply', message: words });
  });
});
