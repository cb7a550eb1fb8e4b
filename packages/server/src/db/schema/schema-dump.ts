// The schema of a migrated database as text, for `schema.sql`: people read it, and a test compares it.
//
// Read from the catalog rather than by pg_dump, which npm's PostgreSQL packages do not contain, and which names its own
// version. Tables and indexes are in the order of the migrations, with the comments of the migrations (schema-notes.ts). Anything that
// the migrations did not create comes last, by name. Only the schema `public` and its tables are covered: tables, columns, constraints,
// indexes, storage options. The design has no views, triggers, sequences or functions, and the dump throws if it meets one, rather
// than leave it out.
import sql from 'sql-template-tag';
import type { Queryable } from '../db.ts';
import type { SchemaNotes } from './schema-notes.ts';

interface TableRow {
  name: string;
  options: string[] | null;
  columns: {
    name: string;
    type: string;
    required: boolean;
    expression: string | null;
    generated: string;
    storage: string;
  }[];
  constraints: { name: string; definition: string }[] | null;
  indexes: { name: string; definition: string }[] | null;
}

const withoutNotes: SchemaNotes = { opening: [], order: [], comments: new Map() };

/** Deterministic; ends in a newline. */
export async function dumpSchema(db: Queryable, notes: SchemaNotes = withoutNotes): Promise<string> {
  await refuseWhatIsNotCovered(db);
  const tables = await db.query<TableRow>(sql`
    select case when n.nspname = 'public' then '' else n.nspname || '.' end || c.relname as name,
      c.reloptions as options,
      (select jsonb_agg(jsonb_build_object(
          'name', quote_ident(a.attname),
          'type', format_type(a.atttypid, a.atttypmod),
          'required', a.attnotnull,
          'generated', a.attgenerated,
          'storage', case when a.attstorage = t.typstorage then '' else a.attstorage end,
          'expression', pg_get_expr(d.adbin, d.adrelid)) order by a.attnum)
        from pg_attribute a
        join pg_type t on t.oid = a.atttypid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
      (select jsonb_agg(jsonb_build_object('name', quote_ident(k.conname), 'definition', pg_get_constraintdef(k.oid))
          order by array_position(array['p', 'u', 'f', 'c', 'x'], k.contype::text), k.conname collate "C")
        from pg_constraint k where k.conrelid = c.oid and k.contype in ('p', 'u', 'f', 'c', 'x')) as constraints,
      (select jsonb_agg(jsonb_build_object('name', x.relname, 'definition', pg_get_indexdef(i.indexrelid))
          order by x.relname collate "C")
        from pg_index i join pg_class x on x.oid = i.indexrelid
        where i.indrelid = c.oid and not exists (
          select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))) as indexes
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r'
    order by n.nspname desc, c.relname collate "C"`);
  const header =
    '-- The schema that the migrations make, for reading. Written by `npm run schema`; do not edit: a test compares it.';
  const opening = [header, ...(notes.opening.length > 0 ? ['--', ...notes.opening] : [])].map((line) => `${line}\n`);
  return [opening.join(''), ...inOrder(tables, notes).map((table) => tableText(table, notes))].join('\n');
}

function inOrder<T extends { name: string }>(things: T[], { order }: SchemaNotes): T[] {
  const placeOf = new Map(order.map((name, place) => [name, place]));
  const place = ({ name }: T) => placeOf.get(name) ?? order.length;
  return things.toSorted((a, b) => place(a) - place(b));
}

function tableText({ name, options, columns, constraints, indexes }: TableRow, notes: SchemaNotes): string {
  const storageNames: Record<string, string> = { p: 'plain', e: 'external', m: 'main', x: 'extended' };
  const commentOn = (what: string, indent = '') =>
    (notes.comments.get(what) ?? []).map((line) => `${indent}${line}\n`).join('');
  const lines = [
    ...columns.map(
      (column) => `${commentOn(`${name}.${column.name.replaceAll('"', '')}`, '  ')}  ${columnText(column)}`,
    ),
    ...(constraints ?? []).map((one) => `  constraint ${one.name} ${constraintText(one.definition)}`),
  ];
  const storageOptions = options ? ` with (${options.toSorted().join(', ')})` : '';
  const table = `${commentOn(name)}create table ${name} (\n${lines.join(',\n')}\n)${storageOptions};\n`;
  // PostgreSQL 15 takes it from no `create table`.
  const storage = columns
    .filter((column) => column.storage)
    .map((column) => `alter table ${name} alter ${column.name} set storage ${storageNames[column.storage]};\n`);
  const indexTexts = inOrder(indexes ?? [], notes).map(
    (index) => `${commentOn(index.name)}${indexText(index.definition)};\n`,
  );
  return table + storage.join('') + indexTexts.join('');
}

function columnText({ name, type, required, expression, generated }: TableRow['columns'][number]): string {
  return [
    name,
    type.replace(/^timestamp with time zone/, 'timestamptz'),
    generated ? `generated always as (${expression}) ${generated === 's' ? 'stored' : 'virtual'}` : '',
    expression !== null && !generated ? `default ${expression}` : '',
    required ? 'not null' : '',
  ]
    .filter(Boolean)
    .join(' ');
}

// As the migrations write it, as far as that is sure to mean the same.
function constraintText(definition: string): string {
  return definition
    .replace(/^(PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK)/, (words) => words.toLowerCase())
    .replace(/(?<=^foreign key \([^)]*\)) REFERENCES /, ' references ')
    .replace(/(?<=^foreign key .*\)) ON DELETE (CASCADE|SET NULL)$/, (words) => words.toLowerCase());
}

function indexText(definition: string): string {
  return definition
    .replace(
      /^CREATE (UNIQUE )?INDEX (\S+) ON (?:public\.)?/,
      (_, unique, name) => `create ${unique ? 'unique ' : ''}index ${name} on `,
    )
    .replace(/^(create [\w ]+ on \S+) USING btree /, '$1 ');
}

async function refuseWhatIsNotCovered(db: Queryable): Promise<void> {
  const found = await db.query<{ what: string }>(sql`
    select what from (
      select 'relation ' || relname as what from pg_class
        where relnamespace::regnamespace::text = 'public' and relkind not in ('r', 'i', 't')
      union all
      select 'function ' || proname from pg_proc where pronamespace::regnamespace::text = 'public'
      union all
      select 'trigger ' || tgname from pg_trigger where not tgisinternal
      union all
      select 'type ' || typname from pg_type t
        where typnamespace::regnamespace::text = 'public' and typtype in ('d', 'e', 'r')
    ) as x order by what`);
  if (found.length > 0) {
    throw new Error(`schema.sql cannot show: ${found.map((row) => row.what).join(', ')}. Extend schema-dump.ts.`);
  }
}
