import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger } from 'pino';

/** The log of one node: JSON lines on standard output with `node_id`. Never payloads, never credentials. */
export function createLogger(options: { readonly level: string; readonly nodeId: string }): Logger {
  return pino({
    level: options.level,
    base: { node_id: options.nodeId },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}

/** A log that says nothing; for tests and for code that runs without a node. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}
