import { PatchbayError } from '@patchbay/core';
import { sql } from 'kysely';
import type { StoreDatabase } from '../postgres/store-database.js';
import type { StoreLog } from '../store-log.js';
import { ALL_MIGRATIONS } from './all-migrations.js';

/** Names the advisory lock of migrations; any number that nobody else uses. */
const MIGRATION_LOCK = 7_291_640_317;

/**
 * Brings the tables up to date in one transaction. One node at a time: the others wait for the lock and find nothing
 * left to do. (kysely's own Migrator takes a session lock, which a connection pooler or the embedded database breaks.)
 * @returns the names of the migrations that ran now
 * @throws PatchbayError store_unavailable; unsupported_operation when a newer Patchbay has migrated the database
 */
export async function runMigrations(database: StoreDatabase, logger: StoreLog): Promise<string[]> {
  const ran = await database.migrate(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(transaction);
    await sql`
      create table if not exists patchbay_migrations (
        name text primary key,
        ran_at timestamptz not null default now()
      )`.execute(transaction);
    const { rows } = await sql<{ name: string }>`select name from patchbay_migrations`.execute(transaction);
    const done = new Set(rows.map((row) => row.name));
    refuseNewerDatabase(done);
    const names: string[] = [];
    for (const [name, migration] of Object.entries(ALL_MIGRATIONS).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (done.has(name)) continue;
      await migration.up(transaction);
      await sql`insert into patchbay_migrations (name) values (${name})`.execute(transaction);
      names.push(name);
    }
    return names;
  });
  if (ran.length > 0) logger.info({ migrations: ran }, 'the database was migrated');
  return ran;
}

function refuseNewerDatabase(done: ReadonlySet<string>): void {
  const unknown = [...done].filter((name) => !Object.hasOwn(ALL_MIGRATIONS, name));
  if (unknown.length === 0) return;
  throw new PatchbayError(
    'unsupported_operation',
    `the database was migrated by a newer Patchbay (${unknown.join(', ')}); run that version or a later one`,
  );
}
