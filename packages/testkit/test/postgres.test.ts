import { startPostgres } from '@patchbay/testkit';
import type { PostgresServer } from '@patchbay/testkit';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 300_000);
afterAll(async () => {
  await server.stop();
});

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

describe('a real Postgres for tests', () => {
  test('gives each test a database of its own', async () => {
    const [one, two] = [await server.createDatabase(), await server.createDatabase()];
    await query(one, 'create table t (n int)');
    expect(await query(two, `select to_regclass('t') as t`)).toEqual([{ t: null }]);
  });

  test('comes back with its data after kill -9 and after a restart', async () => {
    const url = await server.createDatabase();
    await query(url, 'create table t (n int)');
    await query(url, 'insert into t values (7)');
    await server.kill();
    await expect(query(url, 'select 1')).rejects.toThrow('ECONNREFUSED');
    await server.start();
    expect(await query(url, 'select n from t')).toEqual([{ n: 7 }]);
    await server.restart();
    expect(await query(url, 'select n from t')).toEqual([{ n: 7 }]);
  });

  test('stands still between pause and resume', async () => {
    server.pause();
    await expect(query(server.url, 'select 1')).rejects.toThrow('timeout');
    server.resume();
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});
