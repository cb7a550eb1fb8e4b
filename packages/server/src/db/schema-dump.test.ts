import { readFile } from 'node:fs/promises';
import sql, { raw } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { createDb, type Db } from './db.ts';
import { dumpSchema } from './schema-dump.ts';

let databases: TestDatabase[];
let dbs: Db[];

beforeEach(() => {
  databases = [];
  dbs = [];
});

afterEach(async () => {
  for (const db of dbs) await db.close();
  for (const database of databases) await database.drop();
});

async function databaseWith(...statements: string[]): Promise<Db> {
  const database = await createTestDatabase({ empty: true });
  const db = createDb({ url: database.url });
  databases.push(database);
  dbs.push(db);
  await db.batch(statements.map((statement) => raw(statement)));
  return db;
}

const PARENT = 'create table parent (org uuid, id uuid, primary key (org, id), constraint b_unique unique (org))';
const CHILD = `create table child (
  org uuid not null, id uuid not null, n int default 3 check (n > 0), at timestamptz not null default now(),
  twice int generated always as (n * 2) stored, body text,
  primary key (org, id), foreign key (org, id) references parent (org, id) on delete cascade
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)`;
const INDEXES = [
  'alter table child alter body set storage external',
  'create index by_at on child (at desc) where n is not null',
  'create unique index a_n on child (org, n)',
];

test('shows tables, columns, constraints, indexes and storage options', async () => {
  expect(await dumpSchema(await databaseWith(PARENT, CHILD, ...INDEXES))).toMatchInlineSnapshot(`
    "-- The schema that the migrations make, for reading. Written by \`npm run schema\`; do not edit: a test compares it.

    create table child (
      org uuid not null,
      id uuid not null,
      n integer default 3,
      at timestamp with time zone default now() not null,
      twice integer generated always as ((n * 2)) stored,
      body text,
      constraint child_pkey PRIMARY KEY (org, id),
      constraint child_org_id_fkey FOREIGN KEY (org, id) REFERENCES parent(org, id) ON DELETE CASCADE,
      constraint child_n_check CHECK ((n > 0))
    ) with (autovacuum_vacuum_scale_factor=0.01, fillfactor=70);
    alter table child alter body set storage external;
    CREATE UNIQUE INDEX a_n ON public.child USING btree (org, n);
    CREATE INDEX by_at ON public.child USING btree (at DESC) WHERE (n IS NOT NULL);

    create table parent (
      org uuid not null,
      id uuid not null,
      constraint parent_pkey PRIMARY KEY (org, id),
      constraint b_unique UNIQUE (org)
    );
    "
  `);
});

test('is the same text for the same schema, and makes it again', async () => {
  const first = await dumpSchema(await databaseWith(PARENT, CHILD, ...INDEXES));
  const tables = first.split(/(?<=;)\n/).filter((text) => text.trim() !== '');
  // The child refers to the parent, which the alphabet puts behind it.
  const inOrder = tables.toSorted((a, b) => Number(b.includes('table parent')) - Number(a.includes('table parent')));
  expect(await dumpSchema(await databaseWith(...inOrder))).toBe(first);
});

test('differs when any of it differs', async () => {
  const changes = [
    'alter table child alter n set default 4',
    'alter table child alter n set not null',
    'alter table child set (fillfactor = 80)',
    'alter table child drop constraint child_n_check',
    'drop index by_at',
    'alter table parent add extra text',
    'alter table child alter body set storage main',
  ];
  const db = await databaseWith(PARENT, CHILD, ...INDEXES);
  const seen = new Set([await dumpSchema(db)]);
  for (const change of changes) {
    await db.execute(raw(change));
    seen.add(await dumpSchema(db));
  }
  expect(seen.size).toBe(changes.length + 1);
});

test('throws at what it cannot show, rather than leave it out', async () => {
  const db = await databaseWith(PARENT);
  await db.execute(sql`create view v as select 1 as one`);
  await expect(dumpSchema(db)).rejects.toThrow('relation v');
});

test('schema.sql is what the migrations make: after a change to them, run `npm run schema`', async () => {
  const committed = await readFile(new URL('../../schema.sql', import.meta.url), 'utf8');
  const migrated = await createTestDatabase();
  const db = createDb({ url: migrated.url });
  expect(await dumpSchema(db)).toBe(committed);
  await db.close();
  await migrated.drop();
});
