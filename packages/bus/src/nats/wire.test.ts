import { setImmediate as endOfTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ErrorCode, NatsError } from 'nats';
import type { NatsConnection } from 'nats';
import { NatsWire } from './wire.js';

const MAX_PAYLOAD = 65_536;

/** Notes what it is asked to publish. */
class Connection {
  readonly done: string[] = [];
  readonly info = { max_payload: MAX_PAYLOAD } as NatsConnection['info'] & object;
  isClosed = false;

  publish(subject: string): void {
    if (this.isClosed) throw new NatsError('closed', ErrorCode.ConnectionClosed);
    this.done.push(subject);
  }

  flush(): Promise<void> {
    this.done.push('flush');
    return Promise.resolve();
  }
}

const body = (length: number): Uint8Array => new Uint8Array(length);

describe('NatsWire', () => {
  it('sends what one turn says at its end, in order', async () => {
    const connection = new Connection();
    const wire = new NatsWire(connection);
    expect(wire.send('a', body(10))).toBe(true);
    await Promise.resolve();
    expect(wire.send('b', body(10), { head: Buffer.from('NATS/1.0\r\n\r\n'), reply: 'r' })).toBe(true);
    expect(connection.done).toEqual([]);
    await endOfTurn();
    expect(connection.done).toEqual(['a', 'b']);
    wire.send('c', body(10));
    await endOfTurn();
    expect(connection.done).toEqual(['a', 'b', 'c']);
  });

  it('sends before a flush what was said before it, and much at once', async () => {
    const connection = new Connection();
    const wire = new NatsWire(connection);
    wire.send('a', body(10));
    await wire.flush();
    expect(connection.done).toEqual(['a', 'flush']);
    wire.send('b', body(10));
    wire.send('c', body(40_000));
    expect(connection.done).toEqual(['a', 'flush', 'b', 'c']);
  });

  it('refuses what the server does not take, head and body together', () => {
    const wire = new NatsWire(new Connection());
    expect(wire.send('a', body(MAX_PAYLOAD))).toBe(true);
    expect(wire.send('a', body(MAX_PAYLOAD + 1))).toBe(false);
    expect(wire.send('a', body(MAX_PAYLOAD), { head: Buffer.from('NATS/1.0\r\n\r\n') })).toBe(false);
  });

  it('keeps nothing for the next link, and leaves a closed one alone', async () => {
    const connection = new Connection();
    const wire = new NatsWire(connection);
    wire.send('a', body(10));
    wire.drop();
    wire.send('b', body(10));
    connection.isClosed = true;
    await endOfTurn();
    expect(connection.done).toEqual([]);
  });
});
