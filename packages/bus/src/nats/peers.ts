import { WheelEntry } from '../deadline-wheel.js';
import { Peer } from './peer.js';
import type { PeerHost } from './peer.js';
import { connectionOf } from './reply-multiplexer.js';
import type { Receiver } from './reply-multiplexer.js';
import type { WireMessage } from './wire-message.js';

const ALIVE_EVERY_MS = 1_000;
/** A caller that has not answered our signs of life for so long is gone; its host may have died without a word. */
const GONE_AFTER_MS = 5_000;
const FORGET_AFTER_MS = 5_000;

/** A call that is told when its responder shows a sign of life. */
export interface AliveReceiver extends Receiver {
  onAlive(): void;
}

/** All connections that frames are exchanged with; once a second each hears that our exchanges with it live. */
export class Peers extends WheelEntry {
  readonly #host: PeerHost;
  readonly #receiver: (token: string) => Receiver | undefined;
  readonly #peers = new Map<string, Peer>();

  constructor(host: PeerHost, receiver: (token: string) => Receiver | undefined) {
    super();
    this.#host = host;
    this.#receiver = receiver;
  }

  get size(): number {
    return this.#peers.size;
  }

  /** The peer that owns `subject`. */
  of(subject: string): Peer {
    const connection = connectionOf(subject);
    let peer = this.#peers.get(connection);
    if (peer === undefined) {
      this.#peers.set(connection, (peer = new Peer(connection, this.#host)));
      if (this.next === undefined) this.#host.wheel.add(this, this.#host.nowMs() + ALIVE_EVERY_MS);
    }
    return peer;
  }

  /** A frame came from `sender`, which had sent so much to us by then. */
  onFrame(sender: string, sent: number): void {
    this.of(sender).onFrame(sent);
  }

  /** Something that concerns a whole connection: a sign of life, its answer, or how much has arrived. */
  onConnectionMessage(message: WireMessage): void {
    if (message.reply === undefined) return;
    const peer = this.of(message.reply);
    if (message.kind === 'credit' && message.credit !== undefined) peer.onReport(message.credit);
    else if (message.kind === 'cancel') peer.onUnknown(tokensOf(message));
    else if (message.kind === 'alive') peer.answerAlive(message.sent, this.#unknown(tokensOf(message)));
  }

  override onDue(nowMs: number): void {
    for (const [connection, peer] of this.#peers) {
      peer.sayAlive(nowMs, GONE_AFTER_MS);
      if (!peer.isIdle(nowMs, FORGET_AFTER_MS)) continue;
      peer.close();
      this.#peers.delete(connection);
    }
    if (this.#peers.size > 0) this.#host.wheel.add(this, nowMs + ALIVE_EVERY_MS);
  }

  /** Forgets everybody: the link is lost. */
  clear(): void {
    this.#host.wheel.remove(this);
    for (const peer of this.#peers.values()) peer.close();
    this.#peers.clear();
  }

  /** Tells the calls that their responder lives; returns those that are no calls of ours any more. */
  #unknown(tokens: readonly string[]): string[] {
    return tokens.filter((token) => {
      const receiver = this.#receiver(token);
      if (receiver === undefined || !('onAlive' in receiver)) return true;
      (receiver as AliveReceiver).onAlive();
      return false;
    });
  }
}

function tokensOf(message: WireMessage): string[] {
  const text = Buffer.from(message.body).toString('latin1');
  return text === '' ? [] : text.split(' ');
}
