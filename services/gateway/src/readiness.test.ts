import { expect, it } from 'vitest';
import { Readiness } from './readiness.js';

it('is ready when every required condition is met and it is not leaving', () => {
  let isMet = true;
  const readiness = new Readiness(() => [
    { name: 'store', isMet },
    { name: 'bus', isMet: false, isRequired: false, detail: 'disconnected' },
  ]);
  expect(readiness.report()).toEqual({
    ready: true,
    draining: false,
    conditions: { store: { met: true, required: true }, bus: { met: false, required: false, detail: 'disconnected' } },
  });
  isMet = false;
  expect(readiness.report().ready).toBe(false);
  isMet = true;
  readiness.startDraining();
  expect(readiness.report()).toMatchObject({ ready: false, draining: true });
});
