// A database of the operator's own, with what they and their hosts do to it.
import { Client } from 'pg';
import sql from 'sql-template-tag';
import { expect, test } from 'vitest';
import { createTestDatabase } from './support/postgres.ts';
import { startTestService } from './support/service.ts';

/** Runs the text as whoever owns the database. */
async function prepare(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(text);
  await client.end();
}

test('a database that has a schema auth, users and migrations of its own is used beside them', async () => {
  const database = await createTestDatabase({ empty: true });
  const name = new URL(database.url).pathname.slice(1);
  await prepare(
    database.url,
    `create schema auth; create table auth.users (id int); create table public.users (id int);
     create table public.schema_migrations (version text); create schema signalbox;
     alter database ${name} set search_path to signalbox`,
  );
  const service = await startTestService({ database });
  const { data } = await service.client.agents.list();
  expect(data).toEqual([]);
  expect((await fetch(`${service.url}/console/api/session`)).status).toBeLessThan(500);
  const rows = await service.db.query(sql`select schemaname from pg_tables where tablename = 'passkeys'`);
  expect(rows).toEqual([{ schemaname: 'signalbox' }]);
  await service.stop();
  await database.drop();
});
