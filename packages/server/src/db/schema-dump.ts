// The schema of a migrated database as text: what `schema.sql` holds, for people to read and for a test to compare.
//
// Read from the catalog rather than by pg_dump, which npm's PostgreSQL packages do not contain, and which names its own
// version. Every object is written in the order of its name (columns in their own order), so that equal schemas give
// equal texts, whatever the order of the migrations' statements. Only the schemas `public` and `auth` and their tables are covered:
// tables, columns, constraints, indexes, storage options; the design has no views, triggers, sequences or functions, and
// the dump throws when it meets one, rather than leave it out.
import sql from 'sql-template-tag';
import type { Queryable } from './db.ts';

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
  indexes: string[] | null;
}

/** Deterministic; ends in a newline. */
export async function dumpSchema(db: Queryable): Promise<string> {
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
      (select array_agg(pg_get_indexdef(i.indexrelid) order by x.relname collate "C")
        from pg_index i join pg_class x on x.oid = i.indexrelid
        where i.indrelid = c.oid and not exists (
          select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))) as indexes
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r'
    order by n.nspname desc, c.relname collate "C"`);
  const header =
    '-- The schema that the migrations make, for reading. Written by `npm run schema`; do not edit: a test compares it.\n';
  return [header, ...tables.map(tableText)].join('\n');
}

function tableText({ name, options, columns, constraints, indexes }: TableRow): string {
  const storageNames: Record<string, string> = { p: 'plain', e: 'external', m: 'main', x: 'extended' };
  const lines = [
    ...columns.map(({ name: column, type, required, expression, generated }) =>
      [
        column,
        type,
        generated ? `generated always as (${expression}) ${generated === 's' ? 'stored' : 'virtual'}` : '',
        expression !== null && !generated ? `default ${expression}` : '',
        required ? 'not null' : '',
      ]
        .filter(Boolean)
        .join(' '),
    ),
    ...(constraints ?? []).map(({ name: constraint, definition }) => `constraint ${constraint} ${definition}`),
  ];
  const storageOptions = options ? ` with (${options.toSorted().join(', ')})` : '';
  const table = `create table ${name} (\n${lines.map((line) => `  ${line}`).join(',\n')}\n)${storageOptions};\n`;
  // PostgreSQL 15 takes it from no `create table`.
  const storage = columns
    .filter((column) => column.storage)
    .map((column) => `alter table ${name} alter ${column.name} set storage ${storageNames[column.storage]};\n`);
  return table + storage.join('') + (indexes ?? []).map((definition) => `${definition};\n`).join('');
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
