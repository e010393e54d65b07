import { getEventListeners } from 'node:events';
import { expect, it, vi } from 'vitest';
import { listenToAbort, shareSignal, stopListening } from './common-signal.js';

function listener(): { handleEvent: () => void } {
  return { handleEvent: vi.fn() };
}

it('tells everybody who listens at the time, through one listener of the signal', () => {
  const controller = new AbortController();
  const signal = shareSignal(shareSignal(controller.signal));
  const [first, second, third, gone] = [listener(), listener(), listener(), listener()];
  for (const one of [first, gone, second, third]) listenToAbort(signal, one);
  stopListening(signal, gone);
  stopListening(signal, gone);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  controller.abort();
  for (const one of [first, second, third]) expect(one.handleEvent).toHaveBeenCalledOnce();
  expect(gone.handleEvent).not.toHaveBeenCalled();
});

it('lets a listener take others off while all are told', () => {
  const controller = new AbortController();
  const signal = shareSignal(controller.signal);
  const second = listener();
  const first = { handleEvent: () => stopListening(signal, second) };
  listenToAbort(signal, first);
  listenToAbort(signal, second);
  controller.abort();
  expect(second.handleEvent).toHaveBeenCalledOnce();
});

it('leaves nothing on a signal of one call', () => {
  const { signal } = new AbortController();
  const one = listener();
  listenToAbort(signal, one);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  stopListening(signal, one);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});
