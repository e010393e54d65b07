import { COUNTED_FROM_BYTES } from './byte-budget.js';
import type { ByteClaim } from './byte-budget.js';

/** Why {@link GrowingBytes.add} took nothing. */
export type GrowthRefusal = 'too_large' | 'no_room';

/**
 * Bytes that arrive in chunks, up to a limit, in one buffer that grows with them: a body that arrives byte by byte must
 * not cost a hundred times its size, and no memory is taken for what was merely announced.
 */
export class GrowingBytes {
  readonly #maxBytes: number;
  readonly #room: Pick<ByteClaim, 'reserve'>;
  #expectedBytes = 0;
  #bytes: Buffer = NOTHING;
  #length = 0;

  /** @param room Is asked for memory over {@link COUNTED_FROM_BYTES}; whoever made it gives it back. */
  constructor(maxBytes: number, room: Pick<ByteClaim, 'reserve'>) {
    this.#maxBytes = maxBytes;
    this.#room = room;
  }

  /** How many bytes were announced: the buffer ends there exactly when they come. */
  expect(bytes: number): void {
    this.#expectedBytes = bytes;
  }

  /** Takes the next chunk. @returns why it was not taken */
  add(chunk: Buffer): GrowthRefusal | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return 'too_large';
    if (this.#length === 0) {
      if (length > COUNTED_FROM_BYTES && !this.#room.reserve(length)) return 'no_room';
      // Most bodies are one chunk, which is kept as it came.
      this.#bytes = chunk;
    } else {
      if ((this.#isBorrowed || length > this.#bytes.length) && !this.#grow(length)) return 'no_room';
      chunk.copy(this.#bytes, this.#length);
    }
    this.#length = length;
    return undefined;
  }

  /** All that has come. */
  get bytes(): Buffer {
    return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
  }

  /** Lets go of the memory. */
  clear(): void {
    this.#bytes = NOTHING;
    this.#length = 0;
  }

  // The first chunk is somebody else's memory until there is a second one.
  get #isBorrowed(): boolean {
    return this.#length === this.#bytes.length;
  }

  #grow(length: number): boolean {
    const most = length <= this.#expectedBytes ? this.#expectedBytes : this.#maxBytes;
    // What is announced is taken at once only when it is little.
    const capacity = Math.min(most, Math.max(length * 2, Math.min(this.#expectedBytes, COUNTED_FROM_BYTES)));
    if (capacity > COUNTED_FROM_BYTES && !this.#room.reserve(capacity)) return false;
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
    return true;
  }
}

const NOTHING = Buffer.alloc(0);
