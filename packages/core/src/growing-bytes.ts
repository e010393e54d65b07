import { COUNTED_FROM_BYTES } from './byte-budget.js';
import type { ByteClaim } from './byte-budget.js';

/** Why {@link GrowingBytes.add} took nothing. */
export type GrowthRefusal = 'too_large' | 'no_room';

/** Pieces are as large as all before them together, up to this. */
const MAX_PIECE_BYTES = 1_048_576;

/**
 * Bytes that arrive in chunks, up to a limit. They are copied into pieces of growing size: a body that arrives byte by
 * byte must not cost a hundred times its size, no memory is taken for what was merely announced, and a body that never
 * ends leaves no garbage behind.
 */
export class GrowingBytes {
  readonly #maxBytes: number;
  readonly #room: Pick<ByteClaim, 'reserve'>;
  #expectedBytes = 0;
  readonly #full: Buffer[] = [];
  /** The piece that is being filled, and how far. */
  #piece: Buffer = NOTHING;
  #filled = 0;
  #length = 0;

  /** @param room Is asked for memory over {@link COUNTED_FROM_BYTES}; whoever made it gives it back. */
  constructor(maxBytes: number, room: Pick<ByteClaim, 'reserve'>) {
    this.#maxBytes = maxBytes;
    this.#room = room;
  }

  /** How many bytes were announced: the memory ends there exactly when they come. */
  expect(bytes: number): void {
    this.#expectedBytes = bytes;
  }

  /** Takes the next chunk. @returns why it was not taken; nothing more may be added then */
  add(chunk: Buffer): GrowthRefusal | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return 'too_large';
    if (this.#length === 0) {
      if (length > COUNTED_FROM_BYTES && !this.#room.reserve(length)) return 'no_room';
      // Most bodies are one chunk, which is kept as it came.
      this.#piece = chunk;
      this.#filled = length;
    } else {
      const copied = chunk.copy(this.#piece, this.#filled);
      this.#filled += copied;
      const rest = chunk.length - copied;
      if (rest > 0) {
        if (!this.#grow(length, rest)) return 'no_room';
        this.#filled = chunk.copy(this.#piece, 0, copied);
      }
    }
    this.#length = length;
    return undefined;
  }

  /** All that has come, in one buffer; large ones are copied into it at the first look. */
  get bytes(): Buffer {
    if (this.#full.length > 0) {
      this.#piece = Buffer.concat([...this.#full, this.#piece.subarray(0, this.#filled)], this.#length);
      this.#filled = this.#length;
      this.#full.length = 0;
    }
    return this.#filled === this.#piece.length ? this.#piece : this.#piece.subarray(0, this.#filled);
  }

  /** Lets go of the memory. */
  clear(): void {
    this.#full.length = 0;
    this.#piece = NOTHING;
    this.#filled = 0;
    this.#length = 0;
  }

  /** Begins a new piece for at least `rest` bytes, the present one being full; `length` in all. */
  #grow(length: number, rest: number): boolean {
    const held = length - rest;
    const most = (length <= this.#expectedBytes ? this.#expectedBytes : this.#maxBytes) - held;
    // What is announced is taken at once only when it is little.
    const wanted = this.#expectedBytes <= COUNTED_FROM_BYTES ? this.#expectedBytes - held : 0;
    const size = Math.min(most, Math.max(rest, wanted, Math.min(length, MAX_PIECE_BYTES)));
    if (held + size > COUNTED_FROM_BYTES && !this.#room.reserve(held + size)) return false;
    this.#full.push(this.#piece);
    this.#piece = Buffer.allocUnsafeSlow(size);
    return true;
  }
}

const NOTHING = Buffer.alloc(0);
