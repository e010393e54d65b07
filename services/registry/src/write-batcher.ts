import { PatchbayError } from '@patchbay/core';

/** Bounds of a {@link WriteBatcher}. */
export interface BatchLimits {
  /** Most rows of one transaction. */
  readonly maxRows: number;
  /** Most bytes of one transaction; a larger row goes alone. */
  readonly maxBytes: number;
  /** Most rows that may wait. */
  readonly maxWaitingRows: number;
  /** Most bytes that may wait. */
  readonly maxWaitingBytes: number;
}

/** A write on its way to a batch. */
export interface SubmittedWrite<W> {
  readonly write: W;
  /** Bytes, about. */
  readonly size: number;
  /** Throws when nobody waits for the write any more; asked just before the commit. */
  readonly assertWanted: () => void;
}

interface Waiting<W, R> {
  readonly submitted: SubmittedWrite<W>;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Groups concurrent writes: one batch is committed at a time, and what arrives meanwhile makes up the next. Gapless
 * revisions allow one writing transaction at a time, so a thousand writes a second need few transactions.
 */
export class WriteBatcher<W, R> {
  readonly #commit: (writes: readonly W[]) => Promise<readonly R[]>;
  readonly #limits: BatchLimits;
  #waiting: Waiting<W, R>[] = [];
  #waitingBytes = 0;
  #working: Promise<void> | undefined;

  /** @param commit Writes a batch and tells the result of each row, in order; throws when none was written. */
  constructor(commit: (writes: readonly W[]) => Promise<readonly R[]>, limits: BatchLimits) {
    this.#commit = commit;
    this.#limits = limits;
  }

  /** @throws PatchbayError `store_unavailable` when too much is waiting; what `commit` or `assertWanted` throws. */
  submit(submitted: SubmittedWrite<W>): Promise<R> {
    const { maxWaitingRows, maxWaitingBytes } = this.#limits;
    if (this.#waiting.length >= maxWaitingRows || this.#waitingBytes + submitted.size > maxWaitingBytes) {
      const message = `the registry is busy: ${this.#waiting.length} writes are waiting for the database; try again`;
      return Promise.reject(new PatchbayError('store_unavailable', message));
    }
    return new Promise<R>((resolve, reject) => {
      this.#waiting.push({ submitted, resolve, reject });
      this.#waitingBytes += submitted.size;
      this.#working ??= this.#work();
    });
  }

  /** Resolves when nothing waits and nothing is being committed. */
  async idle(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  async #work(): Promise<void> {
    // Whatever arrives in the same turn of the event loop belongs to the first batch already.
    await Promise.resolve();
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) await this.#commitBatch(batch);
    this.#working = undefined;
  }

  #take(): Waiting<W, R>[] {
    const { maxRows, maxBytes } = this.#limits;
    let rows = 0;
    let bytes = 0;
    for (const { submitted } of this.#waiting) {
      if (rows === maxRows || (rows > 0 && bytes + submitted.size > maxBytes)) break;
      rows += 1;
      bytes += submitted.size;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, rows);
  }

  async #commitBatch(batch: readonly Waiting<W, R>[]): Promise<void> {
    const wanted = batch.filter(({ submitted, reject }) => {
      try {
        submitted.assertWanted();
        return true;
      } catch (error) {
        reject(error);
        return false;
      }
    });
    if (wanted.length === 0) return;
    try {
      const results = await this.#commit(wanted.map(({ submitted }) => submitted.write));
      for (const [index, { resolve, reject }] of wanted.entries()) {
        const result = results[index];
        if (result === undefined) reject(new PatchbayError('internal', 'a write has no outcome'));
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of wanted) reject(error);
    }
  }
}
