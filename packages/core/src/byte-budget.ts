import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { PatchbayError } from './patchbay-error.js';

/** What is smaller is not counted, so that ordinary calls pay nothing. */
export const COUNTED_FROM_BYTES = 65_536;

const DEFAULT_MAX_BYTES = 268_435_456;
/** A reply that nobody took for so long makes room for others, milliseconds. */
const STALLED_AFTER_MS = 1_000;

/** Somebody's part of a {@link ByteBudget}. */
export interface ByteClaim {
  /**
   * Asks for `bytes` in all, in the place of what was held before. @returns false when there is no room for them; what
   * was held before stays held.
   */
  reserve(bytes: number): boolean;
  /** Gives everything back. Idempotent. */
  release(): void;
}

/**
 * The memory that one process holds for its clients: bodies on their way to agents, and replies that clients have not
 * taken. Everybody who holds some of it asks here first; without a common bound, clients that stop halfway would take
 * as much as they like.
 */
export class ByteBudget {
  readonly #maxBytes: number;
  readonly #clock: Clock;
  /** Claims that can be given up, the oldest first. */
  readonly #unread = new Map<ByteClaim, { readonly sinceMs: number; readonly giveUp: () => void }>();
  #usedBytes = 0;

  /** @param maxBytes Default 268,435,456. */
  constructor(maxBytes: number = DEFAULT_MAX_BYTES, clock: Clock = systemClock) {
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  /** Bytes that are held now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /**
   * A claim that holds nothing yet.
   * @param giveUp What ends whatever the claim is for. Claims with it are ended, the oldest first, when others need the
   * room and they are older than a second: they are replies that their clients do not read.
   */
  claim(giveUp?: () => void): ByteClaim {
    let held = 0;
    const claim: ByteClaim = {
      reserve: (bytes) => {
        if (bytes > held && !this.hasRoom(bytes - held)) return false;
        this.#usedBytes += bytes - held;
        held = bytes;
        return true;
      },
      release: () => {
        this.#usedBytes -= held;
        held = 0;
        this.#unread.delete(claim);
      },
    };
    if (giveUp !== undefined) this.#unread.set(claim, { sinceMs: this.#clock.monotonicMs(), giveUp });
    return claim;
  }

  /** Whether `bytes` more can be held, after giving up what must be. */
  hasRoom(bytes: number): boolean {
    const stalledSinceMs = this.#clock.monotonicMs() - STALLED_AFTER_MS;
    for (const [claim, { sinceMs, giveUp }] of this.#unread) {
      if (this.#usedBytes + bytes <= this.#maxBytes || sinceMs > stalledSinceMs) break;
      claim.release();
      giveUp();
    }
    return this.#usedBytes + bytes <= this.#maxBytes;
  }

  /** What a client is told when there is no room. */
  refusal(): PatchbayError {
    return new PatchbayError('rate_limited', this.refusalWords);
  }

  /** The words of {@link refusal}. */
  get refusalWords(): string {
    return `the gateway holds as many bytes for its clients as PATCHBAY_MAX_BUFFERED_BYTES (${this.#maxBytes}) allows; try again later`;
  }
}
