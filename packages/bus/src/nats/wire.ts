import type { NatsConnection, PublishOptions } from 'nats';
import { NatsError } from 'nats';

const LARGEST_FRAME = 262_144;
const LARGEST_WHOLE = 65_536;
const ROOM_FOR_HEAD = 8_192;
/** So much is not kept until the end of the turn; the client too writes at once what reaches this. */
const RELEASE_BYTES = 32_768;
/** What NATS servers allow when they do not say otherwise. */
const DEFAULT_MAX_PAYLOAD = 1_048_576;

/** What is sent with one message beside its body. */
export interface SendOptions {
  readonly head?: Buffer | undefined;
  readonly reply?: string | undefined;
}

/** What the parts of the adapter need of a connection. */
export interface Wire {
  /** Sends a message; false when it is larger than the server takes. A closed connection swallows it. */
  send(subject: string, body: Uint8Array, options?: SendOptions): boolean;
  /** Resolves when the server has everything sent so far; rejects when the link drops. */
  flush(): Promise<void>;
  /** Bytes that one frame carries at most. */
  readonly frameBytes: number;
  /**
   * Bytes that go as one message without credit, requests and replies alike. More are credited frames, so that a
   * receiver which has stopped cannot make a server hold more than a little for it.
   */
  readonly wholeBytes: number;
}

/** A message that waits for the end of the turn. */
interface Waiting {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly options: PublishOptions;
}

/**
 * The real connection. What is sent in one turn of the event loop leaves with one write at its end: when many calls go
 * on at a time, a write for each costs both ends and the server more than everything else about it.
 */
export class NatsWire implements Wire {
  readonly #connection: Pick<NatsConnection, 'publish' | 'flush' | 'info'>;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #awaitsEnd = false;

  readonly #endTurn = (): void => {
    this.#awaitsEnd = false;
    this.release();
  };

  constructor(connection: Pick<NatsConnection, 'publish' | 'flush' | 'info'>) {
    this.#connection = connection;
  }

  send(subject: string, body: Uint8Array, sendOptions?: SendOptions): boolean {
    const head = sendOptions?.head;
    const bytes = head === undefined ? body.length : body.length + head.length;
    if (bytes > this.#maxPayload) return false;
    const reply = sendOptions?.reply ?? '';
    // The client asks its header class for nothing but the encoded bytes, and these we have already.
    const options = head === undefined ? { reply } : { reply, headers: new EncodedHead(head) };
    this.#waiting.push({ subject, body, options: options as unknown as PublishOptions });
    this.#waitingBytes += bytes;
    if (this.#waitingBytes >= RELEASE_BYTES) this.release();
    else if (!this.#awaitsEnd) {
      this.#awaitsEnd = true;
      setImmediate(this.#endTurn);
    }
    return true;
  }

  /** Hands what waits for the end of the turn to the client now, for what has to come after it. */
  release(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.drop();
    for (const { subject, body, options } of waiting) this.#publish(subject, body, options);
  }

  /** Forgets what waits for the end of the turn: the link is lost, and the client would keep it for the next one. */
  drop(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  flush(): Promise<void> {
    this.release();
    return this.#connection.flush();
  }

  get frameBytes(): number {
    const maxPayload = this.#maxPayload;
    return Math.min(Math.max(maxPayload - ROOM_FOR_HEAD, Math.floor(maxPayload / 2)), LARGEST_FRAME);
  }

  get wholeBytes(): number {
    return Math.min(this.frameBytes, LARGEST_WHOLE);
  }

  get #maxPayload(): number {
    return this.#connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD;
  }

  #publish(subject: string, body: Uint8Array, options: PublishOptions): void {
    try {
      this.#connection.publish(subject, body, options);
    } catch (error) {
      // Closed; or the server has come to take less since.
      if (!(error instanceof NatsError)) throw error;
    }
  }
}

/** Stands in for the client's header class. */
class EncodedHead {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  encode(): Buffer {
    return this.#bytes;
  }
}
