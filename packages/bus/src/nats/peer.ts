import { BusHeader } from '../bus-header.js';
import { WheelEntry } from '../deadline-wheel.js';
import type { DeadlineWheel } from '../deadline-wheel.js';
import { controlLine, encodeHead, frameLine } from './frame-head.js';
import { connectionSubject } from './reply-multiplexer.js';
import type { Inbox, Receiver } from './reply-multiplexer.js';
import type { WireMessage } from './wire-message.js';
import type { Wire } from './wire.js';

/** Bytes of frames that may be on their way to one connection. */
const BUDGET_BYTES = 16 * 1024 * 1024;
/** Received bytes that are reported at once; less waits a moment. */
const REPORT_BYTES = 1024 * 1024;
const REPORT_AFTER_MS = 100;
const NO_RESPONDERS = 503;
/** Signs of life that may find nobody before a peer counts as gone; one may be a route that is just coming up. */
const MAX_MISSES = 2;
const NOTHING = new Uint8Array(0);

/** A sender that waits until its peer has room. */
export interface RoomWaiter {
  pump(): void;
}

/** An exchange that its caller, a connection elsewhere, must know to be alive. */
export interface OpenExchange {
  /** Last token of the subject that the caller waits on. */
  readonly callerToken: string;
  /** The caller is gone, or wants no answer any more. */
  onCallerGone(): void;
}

/** What a peer needs of the bus. */
export interface PeerHost {
  readonly wire: Wire;
  readonly inbox: Inbox;
  readonly wheel: DeadlineWheel;
  nowMs(): number;
}

/**
 * Another connection that frames go to or come from. It keeps what all calls between the two share: how much is on
 * its way, and whether the other side lives.
 *
 * Positions are bytes counted since the sender first met the receiver, so lost frames do not count for ever.
 */
export class Peer extends WheelEntry implements Receiver {
  readonly connection: string;
  readonly #host: PeerHost;
  /** Where the server tells us that nobody listens there; also names our connection to the peer. */
  readonly #ownSubject: string;
  readonly #subject: string;
  readonly #open = new Map<string, Set<OpenExchange>>();
  #waiters: RoomWaiter[] = [];
  #sent = 0;
  #acknowledged = 0;
  #received = 0;
  #reported = 0;
  #lastHeardMs: number;
  #aliveSince: number | undefined;
  #misses = 0;

  constructor(connection: string, host: PeerHost) {
    super();
    this.connection = connection;
    this.#host = host;
    this.#subject = connectionSubject(connection);
    this.#ownSubject = host.inbox.open(this);
    this.#lastHeardMs = host.nowMs();
  }

  /** Whether another frame may go there now. */
  get hasRoom(): boolean {
    return this.#sent - this.#acknowledged < BUDGET_BYTES;
  }

  /** Notes a frame that goes there; returns the position that it carries. */
  count(bytes: number): number {
    this.#sent += bytes;
    return this.#sent;
  }

  /** Calls `pump` of `waiter` when there is room again; in order of asking. */
  waitForRoom(waiter: RoomWaiter): void {
    if (!this.#waiters.includes(waiter)) this.#waiters.push(waiter);
  }

  /** Forgets a waiter. */
  leaveRoom(waiter: RoomWaiter): void {
    this.#waiters = this.#waiters.filter((candidate) => candidate !== waiter);
  }

  /** Adds an exchange that signs of life go out for. */
  join(exchange: OpenExchange): void {
    if (this.#open.size === 0) {
      this.#aliveSince = this.#host.nowMs();
      this.#misses = 0;
    }
    const sharing = this.#open.get(exchange.callerToken);
    if (sharing === undefined) this.#open.set(exchange.callerToken, new Set([exchange]));
    else sharing.add(exchange);
  }

  leave(exchange: OpenExchange): void {
    const sharing = this.#open.get(exchange.callerToken);
    sharing?.delete(exchange);
    if (sharing?.size === 0) this.#open.delete(exchange.callerToken);
    if (this.#open.size === 0) this.#aliveSince = undefined;
  }

  /** Whether the peer can be forgotten. */
  isIdle(nowMs: number, forgetAfterMs: number): boolean {
    if (this.#open.size > 0 || this.next !== undefined) return false;
    return this.#sent === this.#acknowledged || nowMs - this.#lastHeardMs > forgetAfterMs;
  }

  /** A frame came from the peer, which had sent so much by then. */
  onFrame(sent: number): void {
    this.#lastHeardMs = this.#host.nowMs();
    this.#received = sent;
    if (Math.abs(this.#received - this.#reported) >= REPORT_BYTES) this.#report();
    else if (this.next === undefined) this.#host.wheel.add(this, this.#lastHeardMs + REPORT_AFTER_MS);
  }

  override onDue(): void {
    this.#report();
  }

  /** The peer has received our frames up to `position`. */
  onReport(position: number): void {
    this.#lastHeardMs = this.#host.nowMs();
    this.#misses = 0;
    this.#acknowledged = Math.min(position, this.#sent);
    while (this.hasRoom) {
      const waiter = this.#waiters.shift();
      if (waiter === undefined) return;
      waiter.pump();
    }
  }

  /** The peer does not know these calls, or not any more. */
  onUnknown(callerTokens: readonly string[]): void {
    for (const token of callerTokens) {
      for (const exchange of this.#open.get(token) ?? []) exchange.onCallerGone();
    }
  }

  /** Says that our exchanges with the peer live, and gives up a peer that has not answered for `silenceMs`. */
  sayAlive(nowMs: number, silenceMs: number): void {
    if (this.#open.size === 0) return;
    const heardMs = Math.max(this.#lastHeardMs, this.#aliveSince ?? nowMs);
    if (nowMs - heardMs > silenceMs) {
      this.#giveUp();
      return;
    }
    const head = encodeHead(frameLine('alive') + controlLine(BusHeader.sent, this.#sent), undefined);
    for (const tokens of chunked([...this.#open.keys()], this.#host.wire.frameBytes)) {
      this.#host.wire.send(this.#subject, Buffer.from(tokens, 'latin1'), { head, reply: this.#ownSubject });
    }
  }

  /** Answers a sign of life: what has come so far, and which of the calls nobody waits for. */
  answerAlive(sent: number | undefined, unknownTokens: readonly string[]): void {
    if (sent !== undefined) this.#received = sent;
    this.#report();
    const head = encodeHead(frameLine('cancel'), undefined);
    for (const tokens of chunked(unknownTokens, this.#host.wire.frameBytes)) {
      this.#host.wire.send(this.#subject, Buffer.from(tokens, 'latin1'), { head, reply: this.#ownSubject });
    }
  }

  onMessage(message: WireMessage): void {
    if (message.status === NO_RESPONDERS && ++this.#misses >= MAX_MISSES) this.#giveUp();
  }

  onLinkLost(): void {
    this.#waiters = [];
    this.#host.wheel.remove(this);
  }

  /** Ends the acquaintance. */
  close(): void {
    this.onLinkLost();
    this.#host.inbox.close(this.#ownSubject);
  }

  #giveUp(): void {
    for (const sharing of this.#open.values()) for (const exchange of sharing) exchange.onCallerGone();
  }

  #report(): void {
    this.#host.wheel.remove(this);
    this.#reported = this.#received;
    const head = encodeHead(frameLine('credit') + controlLine(BusHeader.credit, this.#received), undefined);
    this.#host.wire.send(this.#subject, NOTHING, { head, reply: this.#ownSubject });
  }
}

/** Tokens joined by spaces, in pieces of at most `bytes`. */
function chunked(tokens: readonly string[], bytes: number): string[] {
  const chunks: string[] = [];
  let chunk = '';
  for (const token of tokens) {
    if (chunk.length + token.length >= bytes) {
      chunks.push(chunk);
      chunk = '';
    }
    chunk += chunk === '' ? token : ` ${token}`;
  }
  if (chunk !== '') chunks.push(chunk);
  return chunks;
}
