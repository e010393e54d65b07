import type { LoadedConfig } from '@patchbay/config';
import { migrate } from '@patchbay/store';
import { createLogger } from '@patchbay/telemetry';
import { storeOptions } from '../store-options.js';

/** `patchbay migrate`: brings the database up to date, and says what that took. */
export async function migrateDatabase({ config }: LoadedConfig): Promise<void> {
  const logger = createLogger({ level: 'warn', nodeId: config.nodeId });
  const names = await migrate(storeOptions(config, logger));
  console.log(names.length === 0 ? 'The database is up to date.' : `Migrated: ${names.join(', ')}`);
}
