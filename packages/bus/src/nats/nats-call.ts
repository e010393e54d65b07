import { isErrorCode, PatchbayError } from '@patchbay/core';
import type { Headers, Message } from '../bus.js';
import { DeadlineExceededError, DisconnectedError, NoRespondersError, RemoteError } from '../bus-error.js';
import { BusHeader } from '../bus-header.js';
import { WheelEntry } from '../deadline-wheel.js';
import type { InHand } from '../in-hand.js';
import { listenToAbort, stopListening } from '../common-signal.js';
import { controlLine, encodeHead, frameLine } from './frame-head.js';
import { IncomingParts } from './incoming-parts.js';
import { OutgoingStream } from './outgoing-stream.js';
import type { PeerHost } from './peer.js';
import type { AliveReceiver, Peers } from './peers.js';
import type { WireMessage } from './wire-message.js';

/** What a call needs of its bus. */
export interface CallHost extends PeerHost {
  readonly peers: Peers;
  readonly maxBodyBytes: number;
}

/** What is called. */
export interface CallTarget {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: Headers | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A frame-speaking responder says within 200 ms that it is at work. */
const FIRST_SIGN_MS = 1_500;
const NEXT_SIGN_MS = 3_000;
const NO_RESPONDERS = 503;
const NOTHING = new Uint8Array(0);
const CANCEL = encodeHead(frameLine('cancel'), undefined);
const SIGN = encodeHead(frameLine('credit') + controlLine(BusHeader.credit, 0), undefined);
const PLAIN_LINES = controlLine(BusHeader.accept, 'frames');

/**
 * The caller's end of a request or stream: sends it, watches that its responder lives, and reads the frames. Hot path:
 * it is its own entry in the deadline wheel, its own abort listener and its own receiver.
 */
export abstract class NatsCall extends WheelEntry implements AliveReceiver {
  protected readonly host: CallHost;
  protected readonly target: CallTarget;
  /** The responder that answers first; frames of others are refused. */
  protected responder: string | undefined;
  readonly #inHand: InHand;
  /** Made with the first frame: most calls are answered without any. */
  #incoming: IncomingParts | undefined;
  #inbox = '';
  #startMs = 0;
  #lastSignMs = 0;
  /** What of a large request follows once it is accepted. */
  #rest: Uint8Array | undefined;
  #request: OutgoingStream | undefined;
  #isOver = false;

  /** @param inHand Counts the calls of its kind. */
  constructor(host: CallHost, target: CallTarget, inHand: InHand) {
    super();
    this.host = host;
    this.target = target;
    this.#inHand = inHand;
  }

  /** When the adapter ends the call by itself, after its start; undefined when the responder keeps the clock. */
  protected abstract readonly deadlineAfterMs: number | undefined;
  /** Control lines of the request beside those of every call. */
  protected abstract readonly requestLines: string;
  /** A whole message of the answer. */
  protected abstract onPart(part: Message, cost: number): void;
  /** The answer is complete. */
  protected abstract onEnd(headers: Headers): void;
  /** A whole answer without frames. */
  protected abstract onWhole(reply: Message): void;
  /** The call failed; nothing follows. */
  protected abstract onFailed(error: PatchbayError): void;

  /** Sends the request. @throws PatchbayError invalid_argument for headers that cannot be carried */
  protected start(): void {
    const { subject, body, headers, timeoutMs, signal } = this.target;
    const { wholeBytes } = this.host.wire;
    const isLarge = body.length > wholeBytes;
    let lines = PLAIN_LINES + this.requestLines + controlLine(BusHeader.timeoutMs, Math.max(1, Math.ceil(timeoutMs)));
    if (isLarge) lines += frameLine('part') + controlLine(BusHeader.sequence, 1);
    const head = encodeHead(lines, headers);
    this.#inHand.take();
    this.#startMs = this.host.nowMs();
    this.#inbox = this.host.inbox.open(this);
    if (signal !== undefined) listenToAbort(signal, this);
    this.#watch(this.#startMs);
    if (isLarge) this.#rest = body.subarray(wholeBytes);
    const first = isLarge ? body.subarray(0, wholeBytes) : body;
    if (this.host.wire.send(subject, first, { head, reply: this.#inbox })) return;
    this.fail(
      new PatchbayError('request_too_large', `the headers of a request to ${subject} are too large for the bus`),
    );
  }

  onMessage(frame: WireMessage): void {
    if (frame.status === NO_RESPONDERS && frame.body.length === 0) {
      this.fail(this.#lastSignMs === 0 ? new NoRespondersError(this.target.subject) : this.#lost());
      return;
    }
    if (frame.reply !== undefined && !this.#isFromResponder(frame.reply)) return;
    this.#lastSignMs = this.host.nowMs();
    try {
      this.#read(frame);
    } catch (error) {
      this.cancel(error as PatchbayError);
    }
  }

  onAlive(): void {
    this.#lastSignMs = this.host.nowMs();
  }

  onLinkLost(): void {
    this.fail(new DisconnectedError(`the link to the message bus dropped during the call to ${this.target.subject}`));
  }

  /** The caller's signal aborted. */
  handleEvent(): void {
    this.cancel(new PatchbayError('cancelled', `the call to ${this.target.subject} was cancelled`));
  }

  override onDue(nowMs: number): void {
    const afterMs = this.deadlineAfterMs;
    if (afterMs !== undefined && nowMs >= this.#startMs + afterMs) {
      this.fail(new DeadlineExceededError(this.target.subject, afterMs));
    } else if (nowMs >= this.#signDueMs()) this.cancel(this.#lost());
    else this.#watch(nowMs);
  }

  /** Ends the call with `error` and tells the responder, when it is known; else its first frame gets the answer. */
  cancel(error: PatchbayError): void {
    if (this.#isOver) return;
    if (this.responder !== undefined) this.host.wire.send(this.responder, NOTHING, { head: CANCEL });
    this.fail(error);
  }

  protected fail(error: PatchbayError): void {
    if (this.#isOver) return;
    this.#request?.stop(error);
    this.finish();
    this.onFailed(error);
  }

  /** Lets go of everything; nothing is read after it. */
  protected finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#inHand.release();
    this.#request?.stop(new PatchbayError('cancelled', 'the call is over'));
    this.host.wheel.remove(this);
    this.host.inbox.close(this.#inbox);
    if (this.target.signal !== undefined) stopListening(this.target.signal, this);
  }

  /** Lets the responder send more. */
  protected grant(bytes: number): void {
    if (this.#isOver || this.responder === undefined || bytes === 0) return;
    const head = encodeHead(frameLine('credit') + controlLine(BusHeader.credit, bytes), undefined);
    this.host.wire.send(this.responder, NOTHING, { head });
  }

  /** Cost of frames whose message is not whole yet; taken by whoever pays it back. */
  protected takePendingCost(): number {
    return this.#incoming?.payPending() ?? 0;
  }

  #read(frame: WireMessage): void {
    const { subject } = this.target;
    switch (frame.kind) {
      case 'accept':
        if (frame.reply === undefined) return;
        if (frame.wantsSign) this.host.wire.send(frame.reply, NOTHING, { head: SIGN });
        if (frame.credit !== undefined) this.#sendRest(frame.reply, frame.credit);
        return;
      case 'credit':
        this.#request?.grant(frame.credit ?? 0);
        return;
      case 'part':
      case 'data': {
        const whole = this.#parts().take(frame);
        if (whole === undefined) this.onPending();
        else this.onPart({ subject, body: whole.body, headers: whole.headers }, whole.cost);
        return;
      }
      case 'end':
        this.#parts().follow(frame);
        this.finish();
        this.onEnd(frame.headers);
        return;
      case 'error':
        // Without a number when nothing was sent before it.
        if (frame.sequence > 0) this.#parts().follow(frame);
        this.fail(remoteError(frame));
        return;
      case 'cancel':
      case 'alive':
        return;
      case undefined:
        this.finish();
        if (frame.error === undefined) this.onWhole({ subject, body: frame.body, headers: frame.headers });
        else this.onFailed(remoteError(frame));
    }
  }

  /** Frames of a message have come that is not whole yet. */
  protected abstract onPending(): void;

  #parts(): IncomingParts {
    this.#incoming ??= new IncomingParts(this.host.maxBodyBytes, 'response_too_large');
    return this.#incoming;
  }

  #sendRest(responder: string, credit: number): void {
    const rest = this.#rest;
    if (rest === undefined) return;
    this.#rest = undefined;
    const peer = this.host.peers.of(responder);
    const { wire } = this.host;
    this.#request = new OutgoingStream({
      wire,
      peer,
      subject: responder,
      reply: this.#inbox,
      credit,
      firstSequence: 2,
    });
    this.#request.send('data', rest).catch(() => {
      // Only when the call has ended, and then it has its own error.
    });
  }

  #isFromResponder(reply: string): boolean {
    this.responder ??= reply;
    if (this.responder === reply) return true;
    this.host.wire.send(reply, NOTHING, { head: CANCEL });
    return false;
  }

  #signDueMs(): number {
    return this.#lastSignMs === 0 ? this.#startMs + FIRST_SIGN_MS : this.#lastSignMs + NEXT_SIGN_MS;
  }

  #watch(nowMs: number): void {
    const signDueMs = Math.max(this.#signDueMs(), nowMs);
    const afterMs = this.deadlineAfterMs;
    this.host.wheel.add(this, afterMs === undefined ? signDueMs : Math.min(signDueMs, this.#startMs + afterMs));
  }

  #lost(): PatchbayError {
    return new PatchbayError('node_lost', `the node that took the call to ${this.target.subject} no longer answers`);
  }
}

function remoteError(frame: WireMessage): RemoteError {
  const code = frame.error !== undefined && isErrorCode(frame.error) ? frame.error : 'internal';
  return new RemoteError(code, frame.errorMessage ?? code, frame.body, frame.headers);
}
