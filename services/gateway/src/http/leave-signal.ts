import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { shareSignal } from '@patchbay/bus';

const signals = new WeakMap<Socket, AbortSignal>();

/**
 * A signal that aborts when the client's connection closes: the client has left, and nobody reads an answer any more.
 * One for each connection, not for each request (hot path: it costs more to make than all else around a call), so
 * whoever listens takes the listener off when the call is over.
 */
export function leaveSignal({ socket }: Pick<IncomingMessage, 'socket'>): AbortSignal {
  const known = signals.get(socket);
  if (known !== undefined) return known;
  if (socket.destroyed) return AbortSignal.abort();
  const controller = new AbortController();
  socket.once('close', () => controller.abort());
  signals.set(socket, controller.signal);
  return shareSignal(controller.signal);
}
