import type { ServerResponse } from 'node:http';
import { COUNTED_FROM_BYTES } from '@patchbay/core';
import type { ByteBudget } from '@patchbay/core';

/**
 * Counts what a client has not taken of a reply, until it has or is gone. Call after a write. A reply that finds no room
 * is cut off, as is one that has stood for long when others need its room.
 */
export function countUnread(response: ServerResponse, budget: ByteBudget): void {
  const bytes = response.writableLength;
  if (bytes <= COUNTED_FROM_BYTES || response.destroyed) return;
  const claim = budget.claim(() => response.destroy());
  if (!claim.reserve(bytes)) {
    claim.release();
    response.destroy();
    return;
  }
  const release = (): void => {
    claim.release();
    response.off('drain', release);
    response.off('close', release);
  };
  response.on('drain', release);
  response.on('close', release);
}

/** @throws PatchbayError rate_limited when a reply of so many bytes finds no room, so that it must not be begun */
export function assertRoom(bytes: number, budget: ByteBudget): void {
  if (bytes > COUNTED_FROM_BYTES && !budget.hasRoom(bytes)) throw budget.refusal();
}
