import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Exchange, Headers } from '../bus.js';
import { DisconnectedError } from '../bus-error.js';
import { endedError } from '../ended-exchange.js';
import { WheelEntry } from '../deadline-wheel.js';
import { partCost } from '../part-queue.js';
import { DEFAULT_WINDOW_BYTES } from './frame-limits.js';
import { encodeHead, errorLines, frameLine } from './frame-head.js';
import type { CallHost } from './nats-call.js';
import type { ExchangeOwner } from './nats-exchange.js';
import type { Receiver } from './reply-multiplexer.js';
import type { WireMessage } from './wire-message.js';

const NO_RESPONDERS = 503;
const NOTHING = new Uint8Array(0);

/**
 * The responder's end of a call by a plain client of NATS: one message per part, the last an empty one marked `end`.
 * Nothing larger than one message can reach such a client.
 */
export class PlainExchange extends WheelEntry implements Exchange, Receiver {
  readonly wants = 'any';
  readonly deadlineMs: number;
  readonly #host: CallHost;
  readonly #owner: ExchangeOwner;
  readonly #subject: string;
  readonly #inbox: string;
  /** Our subject where the server tells that the client left; empty until a part was written. */
  #control = '';
  #unflushedBytes = 0;
  #controller: AbortController | undefined;
  #abortReason: PatchbayError | undefined;
  #isOver = false;

  /** @param timeoutMs Time of a client that does not say how much it has. */
  constructor(
    host: CallHost,
    owner: ExchangeOwner,
    request: WireMessage,
    options: { inbox: string; timeoutMs: number },
  ) {
    super();
    this.#host = host;
    this.#owner = owner;
    this.#subject = request.subject;
    this.#inbox = options.inbox;
    this.deadlineMs = host.nowMs() + (request.timeoutMs ?? options.timeoutMs);
    owner.inHand.take();
    owner.exchanges.take();
    host.wheel.add(this, this.deadlineMs);
    const { subject, body, headers } = request;
    owner.run({ subject, body, headers, exchange: this });
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  confirm(): Promise<boolean> {
    return Promise.resolve(!this.#isOver);
  }

  reply(body: Uint8Array, headers?: Headers): void {
    if (this.#isOver) return;
    const head = encodeHead('', headers);
    if (this.#host.wire.send(this.#inbox, body, { head })) this.#finish();
    else this.#tooLarge();
  }

  write(body: Uint8Array, headers?: Headers): Promise<void> {
    const written = this.#write(body, headers);
    // Whoever does not wait for it need not hear that the client is gone.
    written.catch(() => undefined);
    return written;
  }

  async #write(body: Uint8Array, headers?: Headers): Promise<void> {
    if (this.#isOver) throw this.#abortReason ?? endedError();
    const head = encodeHead('', headers);
    if (this.#control === '') {
      // A stream has no end that we know of.
      this.#host.wheel.remove(this);
      this.#control = this.#host.inbox.open(this);
    }
    if (!this.#host.wire.send(this.#inbox, body, { head, reply: this.#control })) throw this.#tooLarge();
    this.#unflushedBytes += partCost(body.length);
    if (this.#unflushedBytes < DEFAULT_WINDOW_BYTES) return;
    this.#unflushedBytes = 0;
    // A plain client grants nothing; what we can do is not to outrun the server.
    await this.#host.wire.flush().catch(() => undefined);
    if (this.#abortReason !== undefined) throw this.#abortReason;
  }

  end(headers?: Headers): void {
    if (this.#isOver) return;
    this.#host.wire.send(this.#inbox, NOTHING, { head: encodeHead(frameLine('end'), headers) });
    this.#finish();
  }

  fail(code: ErrorCode, message: string, body: Uint8Array = NOTHING, headers?: Headers): void {
    if (this.#isOver) return;
    const head = encodeHead(errorLines(code, message), headers);
    if (!this.#host.wire.send(this.#inbox, body, { head })) this.#host.wire.send(this.#inbox, NOTHING, { head });
    this.#finish();
  }

  /** The bus closes: says so to the caller at once. */
  close(reason: PatchbayError): void {
    if (this.#isOver) return;
    this.#abortReason = reason;
    this.fail(reason.code, reason.message);
    this.#controller?.abort(reason);
  }

  onMessage(message: WireMessage): void {
    if (message.status === NO_RESPONDERS || message.kind === 'cancel') {
      this.#abort(new PatchbayError('cancelled', `the caller of ${this.#subject} is gone`));
    }
  }

  onLinkLost(): void {
    this.#abort(new DisconnectedError(`the link to the caller of ${this.#subject} is lost`));
  }

  override onDue(): void {
    this.#finish();
  }

  #tooLarge(): PatchbayError {
    const message = 'the reply is larger than one NATS message; a plain client cannot get it';
    this.fail('response_too_large', message);
    return new PatchbayError('response_too_large', message);
  }

  #abort(reason: PatchbayError): void {
    if (this.#isOver) return;
    this.#abortReason = reason;
    this.#finish();
    this.#controller?.abort(reason);
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.wheel.remove(this);
    if (this.#control !== '') this.#host.inbox.close(this.#control);
    this.#owner.exchanges.release();
    this.#owner.inHand.release();
  }
}
