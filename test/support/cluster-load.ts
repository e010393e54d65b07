import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@patchbay/testkit';
import { callsTo } from './load-callers.js';
import type { Front } from './load-callers.js';
import { LoadRecorder } from './load-recorder.js';

const CALLERS_PER_FRONT = 4;
const EVERY_MS = 40;
const MEASURED_MS = 2_000;

/** Calls through fronts, and the rate that they run at while nothing is wrong. */
export interface SteadyCalls {
  readonly load: LoadRecorder;
  /** Answered calls a second. */
  readonly fullRate: number;
}

/** Starts calls of `agentIds` through `fronts`; resolves when they have run for a while. */
export async function startSteadyCalls(
  fronts: readonly Front[],
  agentIds: readonly string[],
  timeoutSeconds = 3,
): Promise<SteadyCalls> {
  const load = new LoadRecorder();
  const callers = fronts.flatMap((front) =>
    Array.from({ length: CALLERS_PER_FRONT }, () => callsTo(front, agentIds, timeoutSeconds)),
  );
  load.add(callers, EVERY_MS);
  await sleep(MEASURED_MS + 500);
  return { load, fullRate: load.ratePerSecond(MEASURED_MS, { doing: 'call' }) };
}

/** Resolves when the calls run at their full rate again: at least 95 % of it within one second. */
export async function isAtFullRate({ load, fullRate }: SteadyCalls): Promise<void> {
  await eventually(() => load.ratePerSecond(1_000, { doing: 'call' }) >= 0.95 * fullRate, {
    withinMs: 20_000,
    everyMs: 50,
    what: `${Math.round(fullRate)} answered calls a second`,
  });
}
