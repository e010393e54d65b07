import { MemoryBus, NatsBus, TracedBus } from '@patchbay/bus';
import type { Bus } from '@patchbay/bus';
import type { Config } from '@patchbay/config';
import { asPatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import type { Logger } from '@patchbay/telemetry';

/** Errors that are neither our fault nor the caller's. All others but `internal` are a client's, who is told. */
const OUTAGES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['store_unavailable', 'bus_unavailable', 'node_lost']);

/**
 * The bus that the settings mean: inside this process, or NATS. Waits for a NATS that is not there yet.
 * @throws PatchbayError bus_unavailable when NATS refuses the credentials or `signal` aborts
 */
export async function openBus(config: Config, logger: Logger, signal: AbortSignal | undefined): Promise<Bus> {
  const onHandlerError = (error: unknown, subject: string): void => {
    const { code, message } = asPatchbayError(error);
    if (code === 'internal') logger.error({ err: error, subject }, 'a message could not be handled');
    else if (OUTAGES.has(code)) logger.warn({ code, subject }, message);
    else logger.debug({ code, subject }, message);
  };
  if (config.natsUrl === null) return new TracedBus(new MemoryBus({ onHandlerError }), 'memory');
  const nats = await NatsBus.connect({
    servers: config.natsUrl,
    name: config.nodeId,
    localFirst: config.localFirst,
    onHandlerError,
    onComplaint: (code) => logger.error({ code }, 'NATS complains'),
    onWaiting: (reason) => logger.warn({ reason }, 'waiting for NATS'),
    ...(signal === undefined ? {} : { signal }),
  });
  return new TracedBus(nats, 'nats');
}
