import type { IncomingMessage, ServerResponse } from 'node:http';

/** One server-sent event of a {@link StreamScript}. */
export interface ScriptedEvent {
  readonly name?: string;
  readonly id?: string;
  /** Text is sent as it is (its line breaks make several `data:` lines); anything else as JSON. */
  readonly data: unknown;
  /** Silence before it, milliseconds. Default 0. */
  readonly delayMs?: number;
}

/** An event stream, written as an agent of some sort would. */
export interface StreamScript {
  readonly kind: 'stream';
  readonly events: readonly ScriptedEvent[];
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Default LF. */
  readonly lineEnd?: '\n' | '\r\n' | '\r';
  /** Whether a space follows the colon. Default true. */
  readonly space?: boolean;
  /** `bytes`: every byte is a write of its own. Default `whole`: one write an event. */
  readonly chunks?: 'whole' | 'bytes';
  /** What follows the last event: the proper end, a connection reset, or nothing at all. Default `end`. */
  readonly finally?: 'end' | 'reset' | 'silence';
}

/** What a scripted agent does with each request. */
export type AgentScript =
  /** Answers `{jsonrpc, id, result: {echo: <params>}}`. */
  | { readonly kind: 'echo'; readonly headers?: Readonly<Record<string, string | readonly string[]>> }
  /** Echoes after a while. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Answers exactly this. Status 200 and `application/json` unless said. */
  | {
      readonly kind: 'fixed';
      readonly body: string | Uint8Array;
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string | readonly string[]>>;
    }
  /** Answers with a status that is not 2xx; a body whose `error` is text unless said. */
  | {
      readonly kind: 'error';
      readonly status: number;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | StreamScript
  /** A JSON reply of `bytes` bytes, with a length or chunked. */
  | { readonly kind: 'oversize'; readonly bytes: number; readonly chunked?: boolean }
  /** Never answers. */
  | { readonly kind: 'silent' }
  /** Resets the connection: before the reply, in its middle, or after `events` of a stream. */
  | { readonly kind: 'dying'; readonly when: 'before-reply' | 'mid-reply' }
  | { readonly kind: 'html'; readonly status?: number }
  | { readonly kind: 'empty'; readonly status?: number; readonly contentType?: string }
  /** Events of 64 KiB as fast as the reader takes them, at most `bytesPerSecond`. Default 50 MB/s. */
  | { readonly kind: 'firehose'; readonly bytesPerSecond?: number }
  /** Whatever the test wants. The body has been read. */
  | {
      readonly kind: 'custom';
      readonly handle: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void | Promise<void>;
    };
