import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@patchbay/testkit';
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

/** Resolves when the calls run at their full rate again: at least 95 % of it within one second. */
export async function isAtFullRate({ load, fullRate }: SteadyCalls): Promise<void> {
  await eventually(() => load.ratePerSecond(1_000, { doing: 'call' }) >= 0.95 * fullRate, {
    withinMs: 30_000,
    everyMs: 50,
    what: `${Math.round(fullRate)} answered calls a second`,
  });
}
