import type { Migration } from 'kysely';
import { registryMigration } from './0001-registry.js';

/** Every change of the tables, by name; they run in the order of their names. Never edit one that was released. */
export const ALL_MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-registry': registryMigration,
};
