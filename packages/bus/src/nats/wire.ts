import type { NatsConnection, PublishOptions } from 'nats';
import { ErrorCode, NatsError } from 'nats';

const MAX_PAYLOAD_EXCEEDED: string = ErrorCode.MaxPayloadExceeded;
const LARGEST_FRAME = 262_144;
const LARGEST_WHOLE = 65_536;
const ROOM_FOR_HEAD = 8_192;
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

/** The real connection. */
export class NatsWire implements Wire {
  readonly #connection: NatsConnection;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  send(subject: string, body: Uint8Array, options: SendOptions = {}): boolean {
    const { head, reply } = options;
    const publishOptions: { reply?: string; headers?: unknown } = {};
    if (reply !== undefined) publishOptions.reply = reply;
    // The client asks its header class for nothing but the encoded bytes, and these we have already.
    if (head !== undefined) publishOptions.headers = { encode: () => head };
    try {
      this.#connection.publish(subject, body, publishOptions as PublishOptions);
      return true;
    } catch (error) {
      if (!(error instanceof NatsError)) throw error;
      return error.code !== MAX_PAYLOAD_EXCEEDED;
    }
  }

  flush(): Promise<void> {
    return this.#connection.flush();
  }

  get frameBytes(): number {
    const maxPayload = this.#connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD;
    return Math.min(Math.max(maxPayload - ROOM_FOR_HEAD, Math.floor(maxPayload / 2)), LARGEST_FRAME);
  }

  get wholeBytes(): number {
    return Math.min(this.frameBytes, LARGEST_WHOLE);
  }
}
