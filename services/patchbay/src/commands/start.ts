import type { LoadedConfig } from '@patchbay/config';
import { createLogger } from '@patchbay/telemetry';
import { banner } from '../banner.js';
import { EndSignal } from '../end-signal.js';
import { startNode } from '../start-node.js';

/**
 * `patchbay start`: runs a node until a signal or a fault ends it, then drains.
 * @returns the exit code: 0 when a signal ended it and everything closed well
 */
export async function start(loaded: LoadedConfig): Promise<number> {
  const startedAtMs = performance.now();
  const { config } = loaded;
  // The banner is for the person at a terminal, the log for machines: unless asked for, a terminal gets warnings only.
  const isQuiet = process.stdout.isTTY && loaded.origins.logLevel.origin === 'default';
  const logger = createLogger({ level: isQuiet ? 'warn' : config.logLevel, nodeId: config.nodeId });
  // A reader of our output that went away (`npm start | head`) is no reason to end.
  process.stdout.on('error', () => {});

  using ending = new EndSignal(logger);
  try {
    const node = await startNode(loaded, {
      logger,
      signal: ending.signal,
      onCreatingDatabase: () => {
        console.log(`Creating the embedded database in ${config.dataDir}: a few seconds, once.`);
      },
      onFatal: (message) => ending.end({ exitCode: 1, message }),
    });
    console.log(`\n${banner({ config, ...node, readyInMs: performance.now() - startedAtMs })}\n`);

    const reason = await ending.reason;
    if (reason.exitCode === 1) console.error(`patchbay: ${reason.message}`);
    logger.info({ reason: reason.message }, 'draining');
    const isClean = await node.stop();
    logger.info({ is_clean: isClean }, 'stopped');
    return isClean ? reason.exitCode : 1;
  } catch (error) {
    // Ended while it was still starting: everything is closed.
    if (!ending.signal.aborted) throw error;
    const reason = await ending.reason;
    if (reason.exitCode === 1) console.error(`patchbay: ${reason.message}`);
    return reason.exitCode;
  }
}
