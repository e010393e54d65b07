import type { Config } from '@patchbay/config';
import type { StoreOptions } from '@patchbay/store';
import type { Logger } from '@patchbay/telemetry';

/** Which database the settings mean. */
export function storeOptions(config: Config, logger: Logger, onCreating?: () => void): StoreOptions {
  return config.databaseUrl === null
    ? { kind: 'embedded', dataDir: config.dataDir, logger, ...(onCreating === undefined ? {} : { onCreating }) }
    : { kind: 'postgres', url: config.databaseUrl, logger };
}
