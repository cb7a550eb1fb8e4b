import { readFileSync } from 'node:fs';
import { loadModule } from 'libpg-query';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Across, type Exception, problemsOf, schemaOf } from './sql-rules.ts';
import { cameFrom, holds, templatesIn } from './sql-templates.ts';

const tenantTables = new Set(['sessions', 'segments', 'agents', 'pending_deliveries']);
const tables = new Set([...tenantTables, 'nodes']);
const problems = (text: string, exceptions: Exception[] = []) => problemsOf(text, { tenantTables, tables }, exceptions);

beforeAll(async () => {
  await loadModule();
});

describe('the rules accept', () => {
  test.each([
    'select 1',
    'select * from nodes',
    'select * from sessions where organization_id = $1 and session_id = $2',
    'select * from sessions s where s.organization_id = any($1::uuid[]) for update of s skip locked',
    'select * from sessions s join segments g on g.organization_id = s.organization_id and g.session_id = s.session_id where s.organization_id = $1',
    'select * from sessions s left join segments g using (organization_id, session_id) where $1 = s.organization_id',
    'select * from sessions s where s.organization_id = $1 and not exists (select 1 from segments g where g.organization_id = s.organization_id)',
    'select * from sessions s left join lateral (select g.seq from segments g where g.organization_id = $1 limit 1) l on true where s.organization_id = $1',
    'select (select max(g.seq) from segments g where g.organization_id = $1 and g.session_id = s.session_id) from sessions s where s.organization_id = $1',
    'with alive as materialized (select w.node_id from nodes w) select * from sessions s where s.organization_id = $1 and s.node_id not in (select a.node_id from alive a)',
    'select * from sessions s join nodes w on w.node_id = s.node_id where s.organization_id = $1',
    'select * from sessions s where s.organization_id = $1 and s.node_id = (select w.node_id from nodes w where w.claim = $2)',
    'select * from sessions s left join segments g on g.organization_id = $1 where s.organization_id = $1 and exists (select 1 from agents a where a.organization_id = $1 and a.agent_id = s.agent_id)',
    'insert into segments (organization_id, seq) select s.organization_id, (select max(g.seq) from segments g where g.organization_id = $1) from sessions s where s.organization_id = $1',
    'select * from unnest($2::uuid[]) b(sid) cross join lateral (select * from segments g where g.organization_id = $1 and g.session_id = b.sid) x',
    'with i as (insert into segments as g (organization_id, session_id) select s.organization_id, s.session_id from sessions s where s.organization_id = any($1::uuid[]) returning g.organization_id, g.session_id) update sessions s set next_seq = 1 from i where s.organization_id = i.organization_id and s.session_id = i.session_id returning s.session_id',
    'select * from unnest($1::uuid[], $2::uuid[]) h(org, sid) cross join lateral (select x.turn from sessions x where x.organization_id = any($3::uuid[]) and x.organization_id = h.org and x.session_id = h.sid limit 1) s',
    'select * from sessions where organization_id = $1 and session_id = any($2::uuid[]) and status = any($3::text[])',
    'insert into sessions as s (organization_id, session_id) values ($1, $2) on conflict (organization_id) do update set x = excluded.x where s.until < $3 returning s.session_id',
    'update sessions set updated_at = now() where organization_id = $1',
    "select pg_notify('c', $1)",
    'delete from sessions s using agents a where s.organization_id = $1 and a.organization_id = s.organization_id',
    'select * from unnest($2::uuid[]) b(id) cross join lateral (select * from pending_deliveries d where d.organization_id = $1 and d.delivery_id = b.id limit 1) x',
    'delete from pending_deliveries d where d.organization_id = $1 and d.delivery_id = any(array(select s.delivery_id from sessions s where s.organization_id = $1))',
    'select * from unnest($2::uuid[]) b(id) cross join lateral (select 1 from pending_deliveries d where d.organization_id = $1 and d.delivery_id = b.id for no key update of d) x',
    'delete from pending_deliveries d using agents a where d.organization_id = $1 and a.organization_id = $1 and d.delivery_id = any(array(select s.delivery_id from sessions s where s.organization_id = $1))',
    'select * from pending_deliveries d left join sessions s on s.organization_id = d.organization_id where d.organization_id = $1 and d.delivery_id in ($2, $3)',
    'select s.session_id, exists (select 1 from pending_deliveries d where d.organization_id = $1) as more from sessions s where s.organization_id = $1',
    'update pending_deliveries d set retries = b.n from unnest($2::uuid[]) b(id) where d.organization_id = $1 and d.delivery_id = any($2::uuid[]) and d.delivery_id = b.id',
    'select * from pending_deliveries d left join sessions s on s.organization_id = d.organization_id and s.session_id = d.session_id where d.organization_id = $1 and d.delivery_id = $2',
    'with found as materialized (select s.organization_id, s.turn from sessions s where s.organization_id = $1 for no key update of s skip locked), i as (insert into segments (organization_id, turn) select d.organization_id, d.turn from found d) update sessions s set turn = 1 from found d where s.organization_id = $1 and s.turn = d.turn',
    "select set_config('plan_cache_mode', case when current_setting('citus.shard_count', true) is null then 'force_generic_plan' else 'auto' end, true)",
    "select set_config('enable_seqscan', 'off', true)",
    "select set_config('plan_cache_mode', 'force_custom_plan', true)",
  ])('%s', (text) => {
    expect(problems(text)).toEqual([]);
  });
});

describe('the rules find', () => {
  test.each([
    ['no organization', 'select * from sessions where session_id = $1', 'sessions: without'],
    ['a cast on the column', 'select * from sessions where organization_id::text = $1', 'sessions: without'],
    ['an or', 'select * from sessions where organization_id = $1 or session_id = $2', 'sessions: without'],
    [
      'two arrays',
      'select * from sessions where organization_id = any($1::uuid[]) and session_id = any($2::uuid[])',
      'cross product',
    ],
    [
      'two arrays in a subquery',
      'select * from agents a where a.organization_id = $1 and exists (select 1 from sessions s where s.session_id = any($3) and s.organization_id = any($2))',
      'cross product',
    ],
    [
      'a pair',
      'select * from sessions where (organization_id, session_id) in (select * from unnest($1::uuid[], $2::uuid[]))',
      'sessions',
    ],
    [
      'an organization from an array',
      'select * from sessions s join unnest($1::uuid[]) o(id) on s.organization_id = o.id',
      'sessions',
    ],
    [
      'a join on the id alone',
      'select * from sessions s join segments g on g.session_id = s.session_id where s.organization_id = $1',
      'segments',
    ],
    [
      'a subquery without',
      'select 1 from agents where organization_id = $1 and exists (select 1 from sessions where status = $2)',
      'sessions',
    ],
    [
      'the same table inside',
      'select 1 from sessions where organization_id = $1 and session_id in (select session_id from sessions)',
      'sessions',
    ],
    [
      'one side of a union',
      'select 1 from agents where organization_id = $1 union all select 1 from sessions',
      'sessions',
    ],
    [
      'a lateral subquery by the organization of the row outside',
      'select * from sessions s left join lateral (select g.seq from segments g where g.organization_id = s.organization_id limit 1) l on true where s.organization_id = $1',
      'segments: without',
    ],
    [
      'a scalar subquery by the organization of the row outside',
      'insert into segments (organization_id, seq) select s.organization_id, (select max(g.seq) from segments g where g.organization_id = s.organization_id) from sessions s where s.organization_id = $1',
      'segments: without',
    ],
    [
      'a subquery among values',
      'insert into segments (organization_id, seq) values ($1, (select max(g.seq) from segments g where g.organization_id = $1))',
      'values with a subquery',
    ],
    [
      'a table of one node in an outer join',
      'select * from sessions s left join nodes w on w.node_id = s.node_id where s.organization_id = $1',
      'nodes: in an outer join',
    ],
    [
      'a table of one node in a correlated subquery',
      'select * from sessions s where s.organization_id = $1 and not exists (select 1 from nodes w where w.node_id = s.node_id)',
      'nodes: in a correlated subquery',
    ],
    [
      'a condition without a column beside an outer join',
      'select * from sessions s left join segments g on g.organization_id = s.organization_id where s.organization_id = $1 and exists (select 1 from agents a where a.organization_id = $1)',
      'a condition without a column',
    ],
    ['an update without', 'update sessions set epoch = 1 where session_id = $1', 'sessions'],
    [
      'an update by its from',
      'update sessions s set epoch = 1 from unnest($1::uuid[]) o(id) where s.organization_id = o.id',
      'sessions',
    ],
    ['a delete without', 'delete from segments', 'segments'],
    ['an insert without', 'insert into agents (agent_id) values ($1)', 'agents'],
    ['bare returning', 'update sessions set epoch = 1 where organization_id = $1 returning epoch', 'returning'],
    [
      'a clock in returning',
      'insert into agents as a (organization_id) values ($1) returning a.until - clock_timestamp()',
      'returning: read the clock',
    ],
    [
      'a keyword of the clock in returning',
      'update agents a set b = 1 where a.organization_id = $1 returning a.until < current_timestamp',
      'returning: read the clock',
    ],
    [
      'a random value in returning',
      'delete from agents a where a.organization_id = $1 returning gen_random_uuid()',
      'returning: read the clock',
    ],
    [
      'a subquery in returning',
      'insert into agents as a (organization_id) values ($1) returning a.b, exists (select 1 from nodes n) as c',
      'returning: no subquery',
    ],
    [
      'a subquery in returning of a CTE',
      'with u as (update agents a set b = 1 where a.organization_id = $1 returning a.b, (select max(n.x) from nodes n) as c) select * from u',
      'returning: no subquery',
    ],
    [
      'a clock in a conflict',
      'insert into agents as a (organization_id) values ($1) on conflict (organization_id) do update set b = 1 where a.until < now()',
      'on conflict',
    ],
    ['a clock that decides', 'update sessions set x = (until < now()) where organization_id = $1', 'set:'],
    [
      'a notification beside a table',
      "select pg_notify('c', 'x') from sessions where organization_id = $1",
      'pg_notify',
    ],
    ['an advisory lock', 'select pg_advisory_xact_lock(1)', 'pg_advisory_xact_lock'],
    ['a sequence', "select nextval('s')", 'nextval'],
    ['a delete by age', 'delete from events where organization_id = $1 and occurred_at < $2', 'needs a limit'],
    ['a delete by days', 'delete from model_usage_days where organization_id = $1 and day <= $2', 'needs a limit'],
    [
      'a join with a queue',
      'select * from pending_deliveries d join unnest($2::uuid[]) b(id) on d.delivery_id = b.id where d.organization_id = $1',
      'pending_deliveries: joined',
    ],
    [
      'a lateral subquery of a queue without a limit',
      'select * from unnest($2::uuid[]) b(id) cross join lateral (select * from pending_deliveries d where d.organization_id = $1 and d.delivery_id = b.id) x',
      'pending_deliveries: joined',
    ],
    [
      'a queue in a subquery of another table',
      'select 1 from sessions s where s.organization_id = $1 and exists (select 1 from pending_deliveries d where d.organization_id = $1 and d.delivery_id = s.delivery_id)',
      'pending_deliveries: joined',
    ],
    [
      'a subquery beside a queue',
      'select 1 from pending_deliveries d where d.organization_id = $1 and not exists (select 1 from sessions s where s.organization_id = $1 and s.delivery_id = d.delivery_id)',
      'pending_deliveries: joined',
    ],
    [
      'a range of a queue in a join',
      'select 1 from pending_deliveries d join sessions s on s.organization_id = d.organization_id where d.organization_id = $1 and d.delivery_id > $2',
      'pending_deliveries: joined',
    ],
    [
      'a delete from a queue by a join',
      'delete from pending_deliveries d using sessions s where d.organization_id = $1 and s.organization_id = $1 and d.delivery_id = s.delivery_id',
      'pending_deliveries: joined',
    ],
    [
      'an update of a queue by a subquery',
      'update pending_deliveries d set retries = 1 where d.organization_id = $1 and d.delivery_id in (select s.delivery_id from sessions s where s.organization_id = $1)',
      'pending_deliveries: joined',
    ],
    ['a row by its place', 'delete from sessions where organization_id = $1 and ctid = $2', 'ctid'],
    [
      'a row by its place in a subquery',
      'select * from agents a where a.organization_id = $1 and exists (select s.ctid from sessions s where s.organization_id = $1)',
      'ctid',
    ],
    [
      'a row by its place in a CTE',
      'with f as (select s.ctid as place from sessions s where s.organization_id = $1) update sessions s set turn = 1 from f where s.organization_id = $1 and s.ctid = f.place',
      'ctid',
    ],
    ['a forced plan', "select set_config('plan_cache_mode', 'force_generic_plan', true)", 'plan_cache_mode'],
    [
      'a forced plan beside another setting',
      "select set_config('a.b', 'c', true), set_config('plan_cache_mode', $1, true)",
      'plan_cache_mode',
    ],
    [
      'a forced plan for some',
      "select set_config('plan_cache_mode', case when $1 then 'auto' else 'force_generic_plan' end, true)",
      'plan_cache_mode',
    ],
    ['merge', 'merge into agents a using nodes w on true when matched then delete', 'merge'],
    [
      'rows from arrays',
      'insert into agents (organization_id, agent_id) select * from unnest($1::uuid[], $2::uuid[])',
      'bare arrays',
    ],
    [
      'rows from a CTE of arrays',
      'with b as (select * from unnest($1::uuid[], $2::uuid[])) insert into agents (organization_id, agent_id) select * from b',
      'bare arrays',
    ],
    [
      'rows from a changing CTE',
      'with i as (delete from agents a where a.organization_id = $1 returning a.agent_id) insert into agents (organization_id, agent_id) select $1, agent_id from i',
      'bare arrays',
    ],
  ])('%s', (_, text, problem) => {
    expect(problems(text).join('; ')).toContain(problem);
  });
});

test('an exception must be needed, and lock and update nothing', () => {
  const exceptions = [{ like: /sessions/, reason: 'of the test' }];
  expect(problems('select * from sessions', exceptions)).toEqual([]);
  expect(problems('select * from sessions for update', exceptions)).toEqual(['an exception must not lock rows']);
  expect(problems('update sessions set epoch = 1', exceptions)).toEqual(['an exception must not update rows']);
  expect(problems('select * from sessions where organization_id = $1', exceptions)).toHaveLength(1);
});

test('a statement across organizations goes through db/shards.ts, which can confine it, and locks and updates nothing', () => {
  const sent = (text: string, across: Across) => problemsOf(text, { tenantTables, tables }, [], across);
  const whole = 'select * from sessions where node_id = any($1)';
  const confined = `${whole} and organization_id = any($2::uuid[])`;
  expect(problems(whole)).toEqual(['sessions: without an organization']);
  expect(sent(whole, 'everywhere')).toEqual([]);
  expect(sent(confined, 'confined')).toEqual([]);
  expect(sent(whole, 'confined')).toEqual(['sessions: without an organization']);
  expect(sent('select * from sessions s, agents a where s.organization_id = any($1)', 'confined')).toEqual([
    'agents: without an organization',
  ]);
  expect(sent('select * from sessions for update', 'everywhere')).toHaveLength(1);
  expect(sent('update sessions set epoch = 1', 'everywhere')).toHaveLength(1);
  expect(sent('select * from sessions where organization_id = $1', 'everywhere')).toHaveLength(1);
  const exceptions = [{ like: /sessions/, reason: 'of the test' }];
  expect(problemsOf(whole, { tenantTables, tables }, exceptions, 'everywhere')).toHaveLength(1);
});

test.each([
  ['a function', 'from unnest($1::text[]) k(status)'],
  ['a union', "from (select s.status from sessions s union all select 'a') k"],
  ['values', "from (values ('a'), ('b')) k(status)"],
])('a statement across organizations has no lateral subquery for each row of %s', (_, from) => {
  const text = `select k.status ${from} cross join lateral (select 1 from sessions s where s.status = k.status limit 1) x`;
  expect(problemsOf(text, { tenantTables, tables }, [], 'everywhere').join()).toContain(
    'a lateral subquery for each row',
  );
  const ofOne = text.replace('where s.', 'where s.organization_id = $2 and s.');
  expect(problems(ofOne).join()).not.toContain('lateral');
});

test('every key of the schema begins with the organization, and every table except four and those of people has one', () => {
  const { tables, tenantTables, wrongKeys } = schemaOf(
    readFileSync(new URL('../packages/server/schema.sql', import.meta.url), 'utf8'),
  );
  expect(wrongKeys).toEqual([]);
  expect([...tables].filter((table) => !tenantTables.has(table)).toSorted()).toEqual([
    'accounts',
    'installation',
    'master_keys',
    'nodes',
    'passkeys',
    'sign_ins',
    'signalbox_migrations',
    'users',
    'verifications',
  ]);
  const wrong =
    'create table a (organization_id uuid, id uuid primary key, b int unique, foreign key (b) references c (b))';
  expect(schemaOf(`${wrong}; create unique index on a (b)`).wrongKeys).toEqual(['a (id)', 'a (b)', 'a (b)', 'a (b)']);
});

test('templates are found whole, whatever their interpolations contain, and matched with the statements that ran', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text.
  const source = "x(sql`select ${a ? sql`b, ${'}`'}` : empty} from t\n where c = ${{ d: `}` }.d}`)";
  const found = templatesIn(source, 'x.ts');
  expect(found.map(({ pieces }) => pieces)).toEqual([
    ['select ', ' from t\n where c = ', ''],
    ['b, ', ''],
  ]);
  expect(found.map(({ isStatement }) => isStatement)).toEqual([true, false]);
  const [statement, part] = found;
  expect(cameFrom('select b, $1 from t\n where c = $2', statement!)).toBe(true);
  expect(cameFrom('select b, $1 from t\n where c = $2', part!)).toBe(true);
  expect(cameFrom('select z from u', statement!)).toBe(false);
  expect(holds('select x from (select b, $1 from t\n where c = $2) y', statement!)).toBe(true);
  expect(holds('select b, $1 from t\n where c = $2', statement!)).toBe(false);
  expect(holds('select x from (select z from u) y', statement!)).toBe(false);
});
