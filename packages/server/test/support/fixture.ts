// The rows of a database in a file: later releases must be able to migrate them.
//
// Rows are stored as PostgreSQL's JSON, unparsed, which is exact for every type and the same in every major version. The file has no
// table definitions: the migrations create the tables, and a migration never changes.
import { readFile, writeFile } from 'node:fs/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { readMigrations } from '../../src/db/schema/migration-files.ts';
import type { Populated } from '../fixtures/populate.ts';

export interface Fixture extends Populated {
  /** One entry for each migration of the database, in order. */
  migrations: string[];
  /** Each table with its rows in JSON; referenced tables come first. */
  tables: [name: string, rows: string[]][];
}

/** Throws if a table has no rows, because a release that migrates it would not be tested. */
export async function dumpFixture(url: string, populated: Populated): Promise<Fixture> {
  const migrations = (await readMigrations()).map(({ sha256 }) => sha256);
  const tables: Fixture['tables'] = [];
  for (const table of await tablesOf(url)) {
    const rows = await ask<{ row: string }>(url, `select row_to_json(t)::text as row from ${table} t`);
    if (rows.length === 0) throw new Error(`${table} has no rows: let populate.ts do what makes some`);
    tables.push([table, rows.map(({ row }) => row)]);
  }
  return { migrations, ...populated, tables };
}

/** Throws if the file exists: a fixture is what an earlier release wrote, so it is never replaced. */
export async function writeFixture(file: URL, fixture: Fixture): Promise<void> {
  await writeFile(file, gzipSync(JSON.stringify(fixture), { level: 9 }), { flag: 'wx' });
}

export async function readFixture(file: URL): Promise<Fixture> {
  return JSON.parse(gunzipSync(await readFile(file)).toString());
}

/** Restores into a database that has the fixture's migrations and no rows. Throws if its tables are not those of the fixture. */
export async function loadFixture({ tables }: Fixture, url: string): Promise<void> {
  const found = await tablesOf(url);
  const missing = found.filter((table) => !tables.some(([name]) => name === table));
  if (missing.length > 0) throw new Error(`The fixture has no rows of ${missing.join(', ')}`);
  for (const [table, rows] of tables) {
    const columns = await ask<{ name: string }>(
      url,
      `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
      [table],
    ).catch(() => []);
    const here = columns.map(({ name }) => name).toSorted();
    const there = Object.keys(JSON.parse(rows[0]!)).toSorted();
    if (here.join() !== there.join()) throw new Error(`The fixture has other columns of ${table}`);
    const all = `[${rows.join(',')}]`;
    await ask(url, `insert into ${table} select * from json_populate_recordset(null::${table}, $1)`, [all]);
  }
}

/** All tables except that of the migrations, referenced tables first. */
async function tablesOf(url: string): Promise<string[]> {
  const rows = await ask<{ name: string; refersTo: string[] }>(
    url,
    `select c.oid::regclass::text as name,
      array(select distinct k.confrelid::regclass::text from pg_constraint k where k.conrelid = c.oid and k.contype = 'f')
        as "refersTo"
    from pg_class c
    where c.relkind = 'r' and c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
      and c.relname <> 'signalbox_migrations'
    order by 1`,
  );
  const ordered: string[] = [];
  while (ordered.length < rows.length) {
    const next = rows.filter(
      ({ name, refersTo }) => !ordered.includes(name) && refersTo.every((one) => ordered.includes(one)),
    );
    if (next.length === 0) throw new Error('tables refer to each other in a circle');
    ordered.push(...next.map(({ name }) => name));
  }
  return ordered;
}
