import { PatchbayError } from '@patchbay/core';
import type { Headers } from '../bus.js';
import { BusHeader } from '../bus-header.js';
import { partCost } from '../part-queue.js';
import { assertCarriable, controlLine, encodeHead, frameLine } from './frame-head.js';
import type { Peer, RoomWaiter } from './peer.js';
import type { Wire } from './wire.js';

const SMALLEST_FRAME = 4_096;

/** Where the frames of a stream go. */
export interface OutgoingTarget {
  readonly wire: Wire;
  readonly peer: Peer;
  /** Where the receiver waits for them. */
  readonly subject: string;
  /** Where the receiver's credit and cancel are to go. */
  readonly reply: string;
  /** Bytes that the receiver takes unread. */
  readonly credit: number;
  /** Number of the first frame. Default 1. */
  readonly firstSequence?: number;
}

/** A frame's last lines, when it is more than bytes. */
interface Outgoing {
  readonly body: Uint8Array;
  /** How far `body` has been sent. */
  at: number;
  readonly kind: 'data' | 'end' | 'error';
  /** Control lines of the last frame. */
  readonly lines: string;
  readonly headers: Headers | undefined;
  resolve(): void;
  reject(error: PatchbayError): void;
}

/**
 * The sending end of numbered, credited frames: never more on its way than the receiver granted, nor more to one
 * connection than its budget. A message larger than one frame goes as parts; its headers ride on the last.
 */
export class OutgoingStream implements RoomWaiter {
  readonly #target: OutgoingTarget;
  readonly #frameBytes: number;
  #credit: number;
  #sequence: number;
  #queue: Outgoing[] = [];
  #stopped: PatchbayError | undefined;

  constructor(target: OutgoingTarget) {
    this.#target = target;
    this.#credit = target.credit;
    this.#sequence = target.firstSequence ?? 1;
    this.#frameBytes = Math.min(target.wire.frameBytes, Math.max(SMALLEST_FRAME, target.credit));
  }

  /** Whether everything handed over has been sent. */
  get isFlushed(): boolean {
    return this.#queue.length === 0;
  }

  /**
   * Sends a message, an end or an error; in order. Resolves when it is on its way.
   *
   * @throws PatchbayError invalid_argument at once for headers that cannot be carried
   */
  send(kind: Outgoing['kind'], body: Uint8Array, headers?: Headers, lines = ''): Promise<void> {
    // Refused now, while the one who wrote them is there to hear of it.
    if (headers !== undefined) assertCarriable(headers);
    const sent = new Promise<void>((resolve, reject) => {
      if (this.#stopped !== undefined) throw this.#stopped;
      this.#queue.push({ body, at: 0, kind, lines: lines === '' ? frameLine(kind) : lines, headers, resolve, reject });
      this.pump();
    });
    // Whoever does not wait for it need not hear that the receiver is gone.
    sent.catch(() => undefined);
    return sent;
  }

  /** The receiver can take more. */
  grant(bytes: number): void {
    this.#credit += bytes;
    this.pump();
  }

  /** Drops what is not sent; whoever waits for it gets `error`. */
  stop(error: PatchbayError): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = error;
    this.#target.peer.leaveRoom(this);
    for (const waiting of this.#queue.splice(0)) waiting.reject(error);
  }

  /** Sends what credit and budget allow. */
  pump(): void {
    for (;;) {
      const next = this.#queue[0];
      if (next === undefined) return;
      // An end or error without bytes costs nothing, so it never waits for a reader.
      const isFree = next.kind !== 'data' && next.body.length === next.at;
      if (!isFree && this.#credit <= 0) return;
      if (!isFree && !this.#target.peer.hasRoom) {
        this.#target.peer.waitForRoom(this);
        return;
      }
      const isLast = next.body.length - next.at <= this.#frameBytes;
      if (!this.#sendFrame(next, isLast)) {
        this.stop(new PatchbayError('response_too_large', 'the headers of a message do not fit into one of the bus'));
        return;
      }
      if (!isLast) continue;
      this.#queue.shift();
      next.resolve();
    }
  }

  #sendFrame(message: Outgoing, isLast: boolean): boolean {
    const { wire, peer, subject, reply } = this.#target;
    const chunk = message.body.subarray(message.at, isLast ? undefined : message.at + this.#frameBytes);
    const cost = partCost(chunk.length);
    const numbers = controlLine(BusHeader.sequence, this.#sequence) + controlLine(BusHeader.sent, peer.count(cost));
    const head = isLast
      ? encodeHead(message.lines + numbers, message.headers)
      : encodeHead(frameLine('part') + numbers, undefined);
    if (!wire.send(subject, chunk, { head, reply })) {
      peer.count(-cost);
      return false;
    }
    message.at += chunk.length;
    this.#sequence++;
    this.#credit -= cost;
    return true;
  }
}
