import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@patchbay/testkit';
import { expect } from 'vitest';
import { callsTo } from './load-callers.js';
import type { Front } from './load-callers.js';
import { LoadRecorder } from './load-recorder.js';
import type { LoadCaller } from './load-recorder.js';

const CALLERS_PER_FRONT = 4;
/** Slow enough for a machine that has other things to do too. */
const EVERY_MS = 80;
const OTHERS_EVERY_MS = 100;
const MEASURED_MS = 2_000;

/** Calls through fronts, and the rate that they run at while nothing is wrong. */
export interface SteadyCalls {
  readonly load: LoadRecorder;
  /** Answered calls a second. */
  readonly fullRate: number;
}

/** What the load consists of. */
export interface SteadyLoad {
  /** Where calls go in. */
  readonly fronts: readonly Front[];
  /** Who is called. */
  readonly agentIds: readonly string[];
  /** What else is done all the time. */
  readonly beside?: readonly LoadCaller[];
}

/** Starts calls, and what else is done beside them; resolves when all of it has run for a while. */
export async function startSteadyLoad({ fronts, agentIds, beside = [] }: SteadyLoad): Promise<SteadyCalls> {
  const load = new LoadRecorder();
  const callers = fronts.flatMap((front) => Array.from({ length: CALLERS_PER_FRONT }, () => callsTo(front, agentIds)));
  load.add(callers, EVERY_MS).add(beside, OTHERS_EVERY_MS);
  await sleep(MEASURED_MS + 500);
  return { load, fullRate: load.ratePerSecond(MEASURED_MS, { doing: 'call' }) };
}

/** When a process was hurt, and when it was started again and was back. */
export interface Outage {
  readonly hurtMs: number;
  readonly startedMs: number;
  readonly backMs: number;
}

/** By when nothing fails any more: 3.5 s by design, the rest is for a busy machine. */
export const HEALED_AFTER_MS = 5_000;
/** A process that has just started on a busy machine may be slow to give its first signs of life. */
const SETTLES_MS = 3_000;
const MOST_WHILE_IT_SETTLES = 0.05;

/**
 * Checks that nothing hung, and that nothing failed but in the first seconds of an outage. The return of a process costs
 * nothing; on a machine without a free processor a few calls may find it too slow.
 */
export function expectHealed(load: LoadRecorder, { hurtMs, startedMs, backMs }: Outage): void {
  expect(load.scandals()).toEqual([]);
  expect(load.failures({ fromMs: hurtMs + HEALED_AFTER_MS, toMs: startedMs })).toEqual([]);
  const settling = { fromMs: startedMs, toMs: backMs + SETTLES_MS };
  const most = MOST_WHILE_IT_SETTLES * load.select(settling).length;
  expect(load.failures(settling).length, JSON.stringify(load.failures(settling))).toBeLessThanOrEqual(most);
  expect(load.failures({ fromMs: settling.toMs })).toEqual([]);
}

/** Resolves when the calls run at their full rate again: at least 95 % of it within one second. */
export async function isAtFullRate({ load, fullRate }: SteadyCalls): Promise<void> {
  await eventually(() => load.ratePerSecond(1_000, { doing: 'call' }) >= 0.95 * fullRate, {
    withinMs: 30_000,
    everyMs: 50,
    what: `${Math.round(fullRate)} answered calls a second`,
  });
}
