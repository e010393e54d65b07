import { nuid } from 'nats';
import type { Msg, NatsConnection, Subscription } from 'nats';
import { NO_HEADERS } from '../headers.js';
import { encodeHead, frameLine } from './frame-head.js';
import { readMessage } from './wire-message.js';
import type { WireMessage } from './wire-message.js';
import type { Wire } from './wire.js';

/** Somebody who waits for messages on a subject of its own. */
export interface Receiver {
  onMessage(message: WireMessage): void;
  /** The link is lost: nothing more will come. */
  onLinkLost(): void;
}

/** What one needs of the multiplexer to be reached. */
export interface Inbox {
  /** A new subject of this connection that leads to `receiver`. */
  open(receiver: Receiver): string;
  /** Forgets a subject from `open`. */
  close(subject: string): void;
}

/** Who is told of what concerns two connections rather than one call. */
export interface ConnectionListener {
  /** A frame came whose sender has sent so much to this connection by then. */
  onFrame(sender: string, sent: number): void;
  /** A message for the connection as a whole. */
  onConnectionMessage(message: WireMessage): void;
}

/** Last token of the subject for what concerns two connections rather than one call. */
const CONNECTION_TOKEN = '-';
const NOTHING = new Uint8Array(0);
const CANCEL = encodeHead(frameLine('cancel'), NO_HEADERS);

/** The connection that a subject of it names. */
export function connectionOf(subject: string): string {
  return subject.slice(0, subject.lastIndexOf('.'));
}

/** The subject for what concerns a whole connection. */
export function connectionSubject(connection: string): string {
  return `${connection}.${CONNECTION_TOKEN}`;
}

/**
 * All replies and control messages of a connection through one wildcard subscription and a map. Hot path: this takes
 * the place of the client's own request, which costs more than the hop through the server.
 *
 * After a lost link the subjects change, so that nothing of the old life reaches the new one.
 */
export class ReplyMultiplexer implements Inbox {
  readonly #nats: Pick<NatsConnection, 'subscribe'>;
  readonly #wire: Wire;
  readonly #root: string;
  readonly #receivers = new Map<string, Receiver>();
  readonly #onConnection: ConnectionListener;
  #connection = '';
  #subscription: Subscription | undefined;
  #lastToken = 0;

  constructor(nats: Pick<NatsConnection, 'subscribe'>, wire: Wire, root: string, onConnection: ConnectionListener) {
    this.#nats = nats;
    this.#wire = wire;
    this.#root = root;
    this.#onConnection = onConnection;
    this.#subscribe();
  }

  /** What all subjects of this connection begin with. */
  get connection(): string {
    return this.#connection;
  }

  get size(): number {
    return this.#receivers.size;
  }

  open(receiver: Receiver): string {
    const token = (++this.#lastToken).toString(36);
    this.#receivers.set(token, receiver);
    return `${this.#connection}.${token}`;
  }

  close(subject: string): void {
    this.#receivers.delete(subject.slice(this.#connection.length + 1));
  }

  /** Whoever waits on this token. */
  receiver(token: string): Receiver | undefined {
    return this.#receivers.get(token);
  }

  /** Tells every receiver that the link is lost, and takes new subjects. */
  renew(): void {
    const receivers = [...this.#receivers.values()];
    this.#receivers.clear();
    this.#subscription?.unsubscribe();
    this.#subscribe();
    for (const receiver of receivers) receiver.onLinkLost();
  }

  /** Everybody who waits. */
  receivers(): Receiver[] {
    return [...this.#receivers.values()];
  }

  #subscribe(): void {
    this.#connection = `${this.#root}.${nuid.next()}`;
    const tokenAt = this.#connection.length + 1;
    this.#subscription = this.#nats.subscribe(`${this.#connection}.*`, {
      callback: (error, msg) => {
        // An error is a refused subscription, which the bus reports from the connection's status.
        if (error === null) this.#receive(msg, tokenAt);
      },
    });
  }

  #receive(msg: Msg, tokenAt: number): void {
    const message = readMessage(msg);
    const token = message.subject.slice(tokenAt);
    // Before anybody reads it, and whether somebody does or not: it has arrived.
    if (message.sent !== undefined && message.reply !== undefined && message.kind !== 'alive') {
      this.#onConnection.onFrame(message.reply, message.sent);
    }
    const receiver = this.#receivers.get(token);
    if (receiver !== undefined) receiver.onMessage(message);
    else if (token === CONNECTION_TOKEN) this.#onConnection.onConnectionMessage(message);
    else this.#refuse(message);
  }

  /** Whoever still sends to a call that is over is told so; what has no way back needs no answer. */
  #refuse({ reply, kind }: WireMessage): void {
    if (reply === undefined || (kind !== 'accept' && kind !== 'part' && kind !== 'data')) return;
    this.#wire.send(reply, NOTHING, { head: CANCEL });
  }
}
