import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger } from 'pino';

/** The log of one node: JSON lines on standard output with `node_id`. Never payloads, never credentials. */
export function createLogger(options: { readonly level: string; readonly nodeId: string }): Logger {
  return pino(
    {
      level: options.level,
      base: { node_id: options.nodeId },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    standardOutput(),
  );
}

/** Lines that wait for a slow reader are dropped beyond this: a log must not fill the memory. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Standard output, written without waiting. When its reader is gone (a closed terminal, a full disk) the node goes on
 * without a log; left alone, the writer would throw, and then retry for ever when the process is to end.
 */
function standardOutput(): ReturnType<typeof pino.destination> {
  const destination = pino.destination({ dest: 1, sync: false, maxLength: MAX_WAITING_BYTES });
  destination.on('error', () => {
    const nothing = (): void => {};
    Object.assign(destination, { write: () => true, flush: nothing, flushSync: nothing, end: nothing });
  });
  return destination;
}

/** A log that says nothing; for tests and for code that runs without a node. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}
