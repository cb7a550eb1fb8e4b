import { readFile } from 'node:fs/promises';
import sql, { raw } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createDb, type Db } from '../db.ts';
import { readMigrations } from './migration-files.ts';
import { dumpSchema } from './schema-dump.ts';
import { readSchemaNotes } from './schema-notes.ts';

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
      at timestamptz default now() not null,
      twice integer generated always as ((n * 2)) stored,
      body text,
      constraint child_pkey primary key (org, id),
      constraint child_org_id_fkey foreign key (org, id) references parent(org, id) on delete cascade,
      constraint child_n_check check ((n > 0))
    ) with (autovacuum_vacuum_scale_factor=0.01, fillfactor=70);
    alter table child alter body set storage external;
    create unique index a_n on child (org, n);
    create index by_at on child (at DESC) WHERE (n IS NOT NULL);

    create table parent (
      org uuid not null,
      id uuid not null,
      constraint parent_pkey primary key (org, id),
      constraint b_unique unique (org)
    );
    "
  `);
});

test('is the same text for the same schema, and recreates it', async () => {
  const first = await dumpSchema(await databaseWith(PARENT, CHILD, ...INDEXES));
  const tables = first.split(/(?<=;)\n/).filter((text) => text.trim() !== '');
  // The child refers to the parent, which comes after it in the alphabet.
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

test('throws if there is anything it cannot show, instead of omitting it', async () => {
  const db = await databaseWith(PARENT);
  await db.execute(sql`create view v as select 1 as one`);
  await expect(dumpSchema(db)).rejects.toThrow('relation v');
});

test('tables and indexes are in the order of the migrations, with their comments, including those of columns that were added later', async () => {
  const migrations = [
    '-- What this is.\n\n-- Comes first.\ncreate table zebra (\n  -- Its name.\n  -- In full.\n  id int primary key\n);',
    '-- Works with code of schema version 1 and later.\n\n-- By hand.\ncreate table ant (\n  id int\n);\n-- Finds it.\ncreate index z on ant (id);\ncreate index a on ant (id);',
    '-- Since then.\nalter table zebra add column legs int;\ncreate unique index y on zebra (legs);',
  ];
  const db = await databaseWith(...migrations.flatMap((text) => text.split(/(?<=;)/)), 'create table unknown (id int)');
  expect(await dumpSchema(db, readSchemaNotes(migrations))).toMatchInlineSnapshot(`
    "-- The schema that the migrations make, for reading. Written by \`npm run schema\`; do not edit: a test compares it.
    --
    -- What this is.

    -- Comes first.
    create table zebra (
      -- Its name.
      -- In full.
      id integer not null,
      -- Since then.
      legs integer,
      constraint zebra_pkey primary key (id)
    );
    create unique index y on zebra (legs);

    -- By hand.
    create table ant (
      id integer
    );
    -- Finds it.
    create index z on ant (id);
    create index a on ant (id);

    create table unknown (
      id integer
    );
    "
  `);
});

test('schema.sql is the schema of the migrations: after a change to them, run `npm run schema`', async () => {
  const committed = await readFile(new URL('../../../schema.sql', import.meta.url), 'utf8');
  const migrations = (await readMigrations()).map(({ text }) => text);
  const migrated = await createTestDatabase();
  const db = createDb({ url: migrated.url });
  expect(await dumpSchema(db, readSchemaNotes(migrations))).toBe(committed);
  await db.close();
  await migrated.drop();
  // A comment that is not directly above its object would be lost. What opens a migration is about the change, not the schema.
  const comments = migrations.flatMap((text) => text.replace(/^(--.*\n)+\n/, '').match(/^ *--.*$/gm) ?? []);
  expect(comments.filter((comment) => !committed.includes(comment.trim()))).toEqual([]);
});
