import { asPatchbayError } from '@patchbay/core';
import type { Delivery, Handler } from './bus.js';
import { RemoteError } from './bus-error.js';

/** Told of every error that a subscriber let out; for the log. */
export type HandlerErrorListener = (error: unknown, subject: string) => void;

/**
 * Runs a subscriber so that its errors hurt nobody: they end its exchange and go to `onError`. Returns what to wait
 * for when the handler went on asynchronously; that promise never rejects.
 */
export function runHandler(
  handler: Handler,
  delivery: Delivery,
  onError: HandlerErrorListener,
): Promise<void> | undefined {
  let running: void | Promise<void>;
  try {
    running = handler(delivery);
  } catch (error) {
    failed(error, delivery, onError);
    return undefined;
  }
  if (running === undefined) return undefined;
  return running.then(undefined, (error: unknown) => {
    failed(error, delivery, onError);
  });
}

function failed(error: unknown, delivery: Delivery, onError: HandlerErrorListener): void {
  const { code, message } = asPatchbayError(error);
  if (error instanceof RemoteError) delivery.exchange?.fail(code, message, error.body, error.headers);
  else delivery.exchange?.fail(code, message);
  try {
    onError(error, delivery.subject);
  } catch {
    // A log that fails must not take the bus with it.
  }
}
