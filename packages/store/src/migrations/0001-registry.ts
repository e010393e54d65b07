import { sql } from 'kysely';
import type { Kysely, Migration } from 'kysely';

/**
 * The registry and its history. Ids compare by bytes (`collate "C"`), so that every node locks them in the same
 * order. `agent_liveness` has no index on `last_seen` and room in its pages: a beat changes no index (HOT update).
 */
export const registryMigration: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      create table agents (
        agent_id text collate "C" primary key,
        dialect text not null,
        owner text,
        card_raw bytea not null,
        record jsonb not null,
        ordinal bigint not null unique,
        revision bigint not null,
        registered_at timestamptz(3) not null
      )`.execute(db);
    await sql`
      create table agent_liveness (
        agent_id text collate "C" primary key,
        last_seen timestamptz(3) not null
      ) with (fillfactor = 70)`.execute(db);
    await sql`
      create table registry_head (
        one boolean primary key default true check (one),
        revision bigint not null default 0,
        agent_count integer not null default 0,
        pruned_to bigint not null default 0
      )`.execute(db);
    await sql`
      create table registry_events (
        revision bigint primary key,
        kind text not null,
        agent_id text collate "C" not null,
        reason text,
        node_id text not null,
        at timestamptz(3) not null,
        event jsonb not null
      )`.execute(db);
    await sql`
      create table liveness_sweep (
        one boolean primary key default true check (one),
        completed_at timestamptz(3),
        grace_until timestamptz(3)
      )`.execute(db);
    await sql`insert into registry_head default values`.execute(db);
    await sql`insert into liveness_sweep default values`.execute(db);
  },
};
