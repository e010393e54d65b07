/** Told when a signal aborts. */
export interface AbortListener {
  handleEvent(): void;
}

const shared = new WeakMap<AbortSignal, SharedSignal>();

/** The listeners of one signal that many calls are given, behind one listener of the signal's own. */
class SharedSignal implements AbortListener {
  readonly #listeners: AbortListener[] = [];

  add(listener: AbortListener): void {
    this.#listeners.push(listener);
  }

  remove(listener: AbortListener): void {
    const at = this.#listeners.indexOf(listener);
    if (at === -1) return;
    const last = this.#listeners.pop();
    if (last !== undefined && last !== listener) this.#listeners[at] = last;
  }

  handleEvent(): void {
    for (const listener of this.#listeners.splice(0)) listener.handleEvent();
  }
}

/**
 * Says of a signal that many calls will be given it, one after the other, and returns it. The bus then keeps one
 * listener on it for as long as it lives. Hot path: putting a listener on a signal and taking it off again costs more
 * than carrying a call through a process. Not for signals made by `AbortSignal.any` or `timeout`: with a listener those
 * live until they abort.
 */
export function shareSignal(signal: AbortSignal): AbortSignal {
  if (!shared.has(signal)) {
    const one = new SharedSignal();
    shared.set(signal, one);
    signal.addEventListener('abort', one);
  }
  return signal;
}

/** Tells `listener` when `signal` aborts, until {@link stopListening}. */
export function listenToAbort(signal: AbortSignal, listener: AbortListener): void {
  const one = shared.get(signal);
  if (one === undefined) signal.addEventListener('abort', listener);
  else one.add(listener);
}

/** Ends what {@link listenToAbort} began. Idempotent. */
export function stopListening(signal: AbortSignal, listener: AbortListener): void {
  const one = shared.get(signal);
  if (one === undefined) signal.removeEventListener('abort', listener);
  else one.remove(listener);
}
