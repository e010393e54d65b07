import type { Msg } from 'nats';
import type { Headers } from '../bus.js';
import { BusHeader } from '../bus-header.js';
import { NO_HEADERS } from '../headers.js';
import { isFrameKind } from './frame-head.js';
import type { FrameKind } from './frame-head.js';

/** Node's decoders (20 and later), which take any bytes: a buffer made for each string costs more than the decoding. */
interface Decoders {
  latin1Slice(this: Uint8Array, start: number, end: number): string;
  utf8Slice(this: Uint8Array, start: number, end: number): string;
}

// oxlint-disable-next-line typescript/unbound-method -- called with the bytes as `this`
const { latin1Slice, utf8Slice } = Buffer.prototype as unknown as Decoders;
const NO_BODY = new Uint8Array(0);

/** A message as it came: the application's headers apart from ours. */
export interface WireMessage {
  readonly subject: string;
  /** Where to answer. */
  readonly reply: string | undefined;
  readonly body: Uint8Array;
  readonly headers: Headers;
  /** Status that the server put on it, such as 503 for no responders; 0 for a message. */
  readonly status: number;
  /** What kind of frame it is; undefined for a whole message. */
  readonly kind: FrameKind | undefined;
  readonly sequence: number;
  readonly credit: number | undefined;
  readonly sent: number | undefined;
  readonly speaksFrames: boolean;
  readonly wantsStream: boolean;
  /** The responder asks whether the caller still waits. */
  readonly wantsSign: boolean;
  readonly timeoutMs: number | undefined;
  readonly error: string | undefined;
  readonly errorMessage: string | undefined;
}

/** The parts of the client's message (nats 2.29) that it would otherwise decode anew, and more slowly. */
interface RawMsg {
  readonly _msg: { readonly subject: Uint8Array; readonly reply?: Uint8Array; readonly hdr: number };
  readonly _rdata?: Uint8Array;
}

class ReadMessage implements WireMessage {
  subject = '';
  reply: string | undefined;
  body: Uint8Array = NO_BODY;
  headers: Headers = NO_HEADERS;
  status = 0;
  kind: FrameKind | undefined;
  sequence = 0;
  credit: number | undefined;
  sent: number | undefined;
  speaksFrames = false;
  wantsStream = false;
  wantsSign = false;
  timeoutMs: number | undefined;
  error: string | undefined;
  errorMessage: string | undefined;
}

/** Reads a message of the client. Hot path: the head is decoded once and never through the client's header class. */
export function readMessage(msg: Msg): WireMessage {
  const raw = msg as unknown as RawMsg;
  const read = new ReadMessage();
  read.subject = latin1(raw._msg.subject);
  const reply = raw._msg.reply;
  if (reply !== undefined && reply.length > 0) read.reply = latin1(reply);
  const data = raw._rdata ?? NO_BODY;
  const headLength = raw._msg.hdr;
  if (headLength <= 0) {
    read.body = data;
    return read;
  }
  read.body = data.subarray(headLength);
  readHead(utf8Slice.call(data, 0, headLength), read);
  return read;
}

function latin1(bytes: Uint8Array): string {
  return latin1Slice.call(bytes, 0, bytes.length);
}

function readHead(head: string, read: ReadMessage): void {
  let end = head.indexOf('\r\n');
  // "NATS/1.0", followed by a status when the server speaks.
  if (end > 8) read.status = Number.parseInt(head.slice(8, end), 10) || 0;
  let headers: Record<string, string> | undefined;
  for (;;) {
    const start = end + 2;
    end = head.indexOf('\r\n', start);
    if (end <= start) break;
    const colon = head.indexOf(':', start);
    if (colon === -1 || colon > end) continue;
    const name = head.slice(start, colon);
    const value = head.slice(head[colon + 1] === ' ' ? colon + 2 : colon + 1, end);
    if (name.startsWith('Patchbay-') && readControl(name, value, read)) continue;
    headers ??= {};
    // A repeated header keeps its first value; "__proto__" is no name for one of ours.
    if (!Object.hasOwn(headers, name) && name !== '__proto__') headers[name] = value;
  }
  if (headers !== undefined) read.headers = headers;
}

/** Whether the header was one of the adapter's own. */
function readControl(name: string, value: string, read: ReadMessage): boolean {
  switch (name) {
    case BusHeader.frame:
      if (isFrameKind(value)) read.kind = value;
      return true;
    case BusHeader.sequence:
      read.sequence = count(value) ?? 0;
      return true;
    case BusHeader.credit:
      read.credit = count(value);
      return true;
    case BusHeader.sent:
      read.sent = count(value);
      return true;
    case BusHeader.accept:
      read.speaksFrames = value === 'frames';
      return true;
    case BusHeader.wants:
      read.wantsStream = value === 'stream';
      read.wantsSign = value === 'sign';
      return true;
    case BusHeader.timeoutMs:
      read.timeoutMs = count(value);
      return true;
    case BusHeader.error:
      read.error = value;
      return true;
    case BusHeader.errorMessage:
      read.errorMessage = value;
      return true;
    default:
      return false;
  }
}

/** A whole number that is not negative; undefined for anything else. */
function count(value: string): number | undefined {
  const number = Number(value);
  return Number.isSafeInteger(number) && number >= 0 && value !== '' ? number : undefined;
}
