import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Delivery, Exchange, Headers } from '../bus.js';
import { DisconnectedError } from '../bus-error.js';
import { BusHeader } from '../bus-header.js';
import { endedError, rejected } from '../ended-exchange.js';
import { WheelEntry } from '../deadline-wheel.js';
import type { InHand } from '../in-hand.js';
import { DEFAULT_WINDOW_BYTES } from './frame-limits.js';
import { assertCarriable, controlLine, encodeHead, errorLines, frameLine } from './frame-head.js';
import { IncomingParts } from './incoming-parts.js';
import type { CallHost } from './nats-call.js';
import { OutgoingStream } from './outgoing-stream.js';
import type { OpenExchange, Peer } from './peer.js';
import type { Receiver } from './reply-multiplexer.js';
import type { WireMessage } from './wire-message.js';

/** A caller that does not say within this time that it still waits has gone. */
const CONFIRM_WITHIN_MS = 1_500;
/** A caller that has heard nothing after this long is told that its call is in hand. */
const ACCEPT_AFTER_MS = 200;
const NO_RESPONDERS = 503;
const NOTHING = new Uint8Array(0);

/** What an exchange needs of the subscription that the call came to. */
export interface ExchangeOwner {
  /** What is in hand there. */
  readonly inHand: InHand;
  /** Exchanges of the whole bus. */
  readonly exchanges: InHand;
  /** Runs the handler. */
  run(delivery: Delivery): void;
}

/**
 * The responder's end of a call by another bus. Hot path: a quick small reply is one message, and no subject, peer or
 * signal is made for it; whatever takes longer is accepted, kept alive and credited.
 */
export class NatsExchange extends WheelEntry implements Exchange, Receiver, OpenExchange {
  readonly wants: 'unary' | 'stream';
  readonly deadlineMs: number;
  readonly #host: CallHost;
  readonly #owner: ExchangeOwner;
  readonly #request: WireMessage;
  readonly #inbox: string;
  /** Our subject for what the caller says of this call; empty until there is one. */
  #control = '';
  #peer: Peer | undefined;
  #outgoing: OutgoingStream | undefined;
  /** The rest of a large request, while it comes. */
  #incoming: IncomingParts | undefined;
  /** Told whether the caller still waits. */
  #confirming: ((isWaiting: boolean) => void)[] = [];
  #controller: AbortController | undefined;
  #abortReason: PatchbayError | undefined;
  /** The handler has said its last word; it may still be on its way. */
  #isAnswered = false;
  #isOver = false;

  /** @param isDoubtful The request may have been under way for long: it is served when the caller says that it waits. */
  constructor(host: CallHost, owner: ExchangeOwner, request: WireMessage, inbox: string, isDoubtful = false) {
    super();
    this.#host = host;
    this.#owner = owner;
    this.#request = request;
    this.#inbox = inbox;
    this.wants = request.wantsStream ? 'stream' : 'unary';
    const nowMs = host.nowMs();
    this.deadlineMs = nowMs + (request.timeoutMs ?? 0);
    owner.inHand.take();
    owner.exchanges.take();
    host.wheel.add(this, nowMs + ACCEPT_AFTER_MS);
    if (request.kind === 'part') this.#receiveRest();
    else if (isDoubtful) void this.#deliverConfirmed();
    else this.#deliver(request.body);
  }

  get callerToken(): string {
    return this.#inbox.slice(this.#inbox.lastIndexOf('.') + 1);
  }

  // Made on first use: most exchanges end before anybody asks for it.
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  confirm(): Promise<boolean> {
    if (this.#isOver) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), CONFIRM_WITHIN_MS);
      this.#confirming.push((isWaiting) => {
        clearTimeout(timer);
        resolve(isWaiting);
      });
      this.#accept(controlLine(BusHeader.wants, 'sign'));
    });
  }

  reply(body: Uint8Array, headers?: Headers): void {
    if (this.#isAnswered) return;
    if (this.wants === 'stream' || this.#outgoing !== undefined || body.length > this.#host.wire.wholeBytes) {
      const outgoing = this.#stream();
      // Checks the headers, so a refusal leaves the exchange open for its error.
      const sent = outgoing.send('data', body, headers);
      this.#isAnswered = true;
      void this.#finishWith(sent, outgoing.send('end', NOTHING));
      return;
    }
    const head = encodeHead('', headers);
    this.#isAnswered = true;
    if (this.#host.wire.send(this.#inbox, body, { head })) this.#finish();
    else this.#failNow('response_too_large', 'the headers of the reply are too large for the bus');
  }

  write(body: Uint8Array, headers?: Headers): Promise<void> {
    if (this.#isAnswered) return rejected(this.#abortReason ?? endedError());
    try {
      return this.#stream().send('data', body, headers);
    } catch (error) {
      return rejected(error);
    }
  }

  end(headers?: Headers): void {
    if (this.#isAnswered) return;
    const sent = this.#stream().send('end', NOTHING, headers);
    this.#isAnswered = true;
    void this.#finishWith(sent);
  }

  fail(code: ErrorCode, message: string, body: Uint8Array = NOTHING, headers?: Headers): void {
    if (this.#isAnswered) return;
    if (headers !== undefined) assertCarriable(headers);
    this.#isAnswered = true;
    if (this.#outgoing === undefined) {
      this.#failNow(code, message, body, headers);
      return;
    }
    const fitting = body.length > this.#host.wire.wholeBytes ? NOTHING : body;
    void this.#finishWith(this.#outgoing.send('error', fitting, headers, errorLines(code, message)));
  }

  /** The bus closes: says so to the caller at once. */
  close(reason: PatchbayError): void {
    if (this.#isOver) return;
    this.#abortReason = reason;
    this.#outgoing?.stop(reason);
    this.#failNow(reason.code, reason.message);
    this.#controller?.abort(reason);
  }

  onMessage(frame: WireMessage): void {
    if (frame.status === NO_RESPONDERS || frame.kind === 'cancel') {
      this.onCallerGone();
      return;
    }
    for (const tell of this.#confirming.splice(0)) tell(true);
    if (frame.kind === 'credit') this.#outgoing?.grant(frame.credit ?? 0);
    else if (frame.kind === 'part' || frame.kind === 'data') this.#receive(frame);
  }

  onCallerGone(): void {
    this.#abort(new PatchbayError('cancelled', `the caller of ${this.#request.subject} is gone`));
  }

  onLinkLost(): void {
    this.#abort(new DisconnectedError(`the link to the caller of ${this.#request.subject} is lost`));
  }

  override onDue(nowMs: number): void {
    if (this.wants === 'unary' && nowMs >= this.deadlineMs) {
      // The caller has given up by its own clock.
      this.#outgoing?.stop(new PatchbayError('deadline_exceeded', 'the time for the reply is over'));
      this.#finish();
      return;
    }
    if (this.#control === '') this.#accept();
    if (this.wants === 'unary') this.#host.wheel.add(this, this.deadlineMs);
  }

  #deliver(body: Uint8Array): void {
    const { subject, headers } = this.#request;
    this.#owner.run({ subject, body, headers, exchange: this });
  }

  async #deliverConfirmed(): Promise<void> {
    if (await this.confirm()) this.#deliver(this.#request.body);
    else this.onCallerGone();
  }

  /** Takes the rest of a large request on a subject of its own; the handler runs when it is whole. */
  #receiveRest(): void {
    this.#incoming = new IncomingParts(this.#host.maxBodyBytes, 'request_too_large');
    this.#accept(controlLine(BusHeader.credit, DEFAULT_WINDOW_BYTES));
    this.#receive(this.#request);
  }

  #receive(frame: WireMessage): void {
    const incoming = this.#incoming;
    if (incoming === undefined || this.#isAnswered) return;
    try {
      const whole = incoming.take(frame);
      if (whole === undefined) {
        // The first part came without credit, so there is none to give back for it.
        const cost = incoming.payPending();
        if (frame === this.#request) return;
        const head = encodeHead(frameLine('credit') + controlLine(BusHeader.credit, cost), undefined);
        this.#host.wire.send(this.#inbox, NOTHING, { head, reply: this.#control });
        return;
      }
      this.#incoming = undefined;
      this.#deliver(whole.body);
    } catch (error) {
      const { code, message } = error as PatchbayError;
      this.fail(code, message);
    }
  }

  /** Says that the call is in hand, and from then on that it lives. */
  #accept(lines = ''): void {
    this.#open();
    const head = encodeHead(frameLine('accept') + lines, undefined);
    this.#host.wire.send(this.#inbox, NOTHING, { head, reply: this.#control });
  }

  #open(): Peer {
    if (this.#peer !== undefined) return this.#peer;
    this.#control = this.#host.inbox.open(this);
    this.#peer = this.#host.peers.of(this.#inbox);
    this.#peer.join(this);
    return this.#peer;
  }

  #stream(): OutgoingStream {
    this.#outgoing ??= new OutgoingStream({
      wire: this.#host.wire,
      peer: this.#open(),
      subject: this.#inbox,
      reply: this.#control,
      credit: this.#request.wantsStream ? (this.#request.credit ?? DEFAULT_WINDOW_BYTES) : DEFAULT_WINDOW_BYTES,
    });
    return this.#outgoing;
  }

  #failNow(code: ErrorCode, message: string, body: Uint8Array = NOTHING, headers?: Headers): void {
    const head = encodeHead(errorLines(code, message), headers);
    if (body.length > this.#host.wire.wholeBytes || !this.#host.wire.send(this.#inbox, body, { head })) {
      this.#host.wire.send(this.#inbox, NOTHING, { head });
    }
    this.#finish();
  }

  async #finishWith(...sent: Promise<void>[]): Promise<void> {
    try {
      await Promise.all(sent);
    } catch (error) {
      const { code, message } = error as PatchbayError;
      if (!this.#isOver) this.#failNow(code, message);
    }
    this.#finish();
  }

  #abort(reason: PatchbayError): void {
    if (this.#isOver) return;
    this.#abortReason = reason;
    this.#outgoing?.stop(reason);
    this.#finish();
    this.#controller?.abort(reason);
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isAnswered = true;
    this.#isOver = true;
    for (const tell of this.#confirming.splice(0)) tell(false);
    this.#host.wheel.remove(this);
    if (this.#peer !== undefined) {
      this.#peer.leave(this);
      this.#host.inbox.close(this.#control);
    }
    this.#owner.exchanges.release();
    this.#owner.inHand.release();
  }
}
