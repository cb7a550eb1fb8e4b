// What an organization used: tokens, model calls and their cost.
//
//   model_usage        one row for each model call, written in the transaction of its response
//   model_usage_days   sums by day, agent, environment and model; compact.ts moves the calls into them soon after
//   model_usage_end_user_days   of these sums, what each end user used; deleted when the end user is erased
//   model_usage_key_days   of these sums, what the sessions of each key used
//
// A call is in one of the two. Rows belong to the organization, not to a session, because deleting a session does not undo its
// cost. A report is one statement over both tables, so it counts each call once even while calls are moved. It covers whole days
// in UTC, because the sums have no times.
import type { Input, Result, Usage, UsageGroup, UsageReport, UsageSum } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { invalidField } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { draftsOf, isDraft, isOfDrafts } from '../lib/draft-version.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { rareCounts } from './rare-counts.ts';

/** Records a model call, in the transaction that stores its response. */
export function insertUsage(
  owner: {
    organizationId: string;
    agentId: string;
    environment: string;
    endUserId: string | null;
    keyId: string | null;
    /** The session's pinned version. */
    pinnedVersion?: number | null;
  },
  call: {
    operationId: string;
    /** `provider/model`, as `modelName` gives it. */
    model: string;
    /** `costUsd` null: the model has no price. */
    usage: Omit<Usage, 'steps' | 'toolCalls'>;
  },
  now: Date,
): Sql {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0, webSearches = 0, costUsd } = call.usage;
  const agentId = isDraft(owner.pinnedVersion ?? null) ? draftsOf(owner.agentId) : owner.agentId;
  return sql`
    insert into model_usage (organization_id, usage_id, occurred_at, agent_id, environment, end_user_id, key_id, model,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, web_searches, cost_usd)
    values (${owner.organizationId}, ${call.operationId}, ${now}, ${agentId}, ${owner.environment}, ${owner.endUserId},
      ${owner.keyId}, ${call.model}, ${inputTokens}, ${outputTokens}, ${cachedTokens}, ${cacheWriteTokens}, ${webSearches}, ${costUsd})`;
}

/** Changes to the row of its session, which has the sum of its calls. */
export function usagePatch(usage: Parameters<typeof insertUsage>[1]['usage']): Sql[] {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0, webSearches = 0, costUsd } = usage;
  return [
    sql`input_tokens = input_tokens + ${inputTokens}`,
    sql`output_tokens = output_tokens + ${outputTokens}`,
    sql`cached_tokens = cached_tokens + ${cachedTokens}`,
    ...(cacheWriteTokens === 0 ? [] : [sql`cache_write_tokens = cache_write_tokens + ${cacheWriteTokens}`]),
    ...(webSearches === 0 ? [] : [sql`web_searches = web_searches + ${webSearches}`]),
    sql`steps = steps + 1`,
    ...(costUsd === null ? [] : [sql`cost_usd = coalesce(cost_usd, 0) + ${costUsd}::numeric`]),
  ];
}

// ── The report ───────────────────────────────────────────────────────────────────────────────────────────────────────

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
// The days of a leap year.
const MAX_DAYS = 366;

// An organization can have any number of agents, and their authors name the models.
const MAX_GROUPS = 1_000;

interface Row {
  /** Null: the sum of everything. */
  place: number | null;
  group: string;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  webSearches: number;
  steps: number;
  unpricedSteps: number;
  costUsd: string;
}

/** 400 if `from` is not before `to`, or the period is longer than 366 days. */
export async function getUsage(ctx: Context, input: Input<'getUsage'>): Promise<Result<'getUsage'>> {
  const groupBy = input.groupBy ?? 'day';
  const agentId = input.agentId === undefined ? undefined : uuidOf('agt', input.agentId);
  const { splitBy, draft } = input;
  const field = agentId !== undefined ? 'agentId' : draft !== undefined ? 'draft' : undefined;
  if (field && groupBy === 'endUser') throw invalidField(field, "can't be given with groupBy=endUser");
  if (field && splitBy === 'endUser') throw invalidField(field, "can't be given with splitBy=endUser");
  if (splitBy !== undefined && groupBy !== 'day') throw invalidField('splitBy', 'needs groupBy=day');
  const { from, to } = periodOf(input, ctx.clock.now());
  const calls = (by: UsageReport['groupBy']) =>
    usedIn(ctx.organizationId, { from, to }, by, input.environment, agentId, draft);
  const column = columns[groupBy];
  const text = groupBy === 'day' ? sql`to_char(g.key, 'YYYY-MM-DD')` : sql`g.key`;
  const [total, ...groups] = await ctx.db.query<Row>(sql`
    with used as (${calls(groupBy)}
    ), grouped as (
      select ${column} as key, sum(u.input_tokens) as input_tokens, sum(u.output_tokens) as output_tokens,
        sum(u.cached_tokens) as cached_tokens, sum(u.cache_write_tokens) as cache_write_tokens,
        sum(u.web_searches) as web_searches, sum(u.steps) as steps, sum(u.unpriced_steps) as unpriced_steps,
        sum(u.cost_usd) as cost_usd,
        least(row_number() over (
          order by sum(u.cost_usd) desc, sum(u.input_tokens + u.output_tokens) desc, ${column}), ${MAX_GROUPS + 1}) as place
      from used u group by ${column} having sum(u.steps) > 0
    )
    select g.place, min(${text}) as "group", coalesce(sum(g.input_tokens), 0)::bigint as "inputTokens",
      coalesce(sum(g.output_tokens), 0)::bigint as "outputTokens",
      coalesce(sum(g.cached_tokens), 0)::bigint as "cachedTokens",
      coalesce(sum(g.cache_write_tokens), 0)::bigint as "cacheWriteTokens",
      coalesce(sum(g.web_searches), 0)::bigint as "webSearches", coalesce(sum(g.steps), 0)::bigint as steps,
      coalesce(sum(g.unpriced_steps), 0)::bigint as "unpricedSteps", coalesce(sum(g.cost_usd), 0) as "costUsd"
    from grouped g group by grouping sets ((g.place), ()) order by g.place nulls first`);
  const listed = groups.filter(({ place }) => place! <= MAX_GROUPS);
  const rest = groups.find(({ place }) => place! > MAX_GROUPS);
  const isKey = (row: Row) => groupBy === 'apiKey' && row.group !== '';
  const keyIds = listed.filter(isKey).map(({ group }) => group);
  const names = keyIds.length > 0 ? await keyNames(ctx, keyIds) : undefined;
  const split = splitBy && (await splitDays(ctx, calls(splitBy), splitBy));
  const data = listed.map((row) => ({
    group: groupName(groupBy, row.group),
    ...(isKey(row) && { name: names?.get(row.group) ?? null }),
    ...sumOf(row),
  }));
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    groupBy,
    total: sumOf(total!),
    data: groupBy === 'day' ? everyDay(from, to, data, split) : data,
    other: rest ? sumOf(rest) : null,
    pricesDate: ctx.prices.builtInDate,
  };
}

const columns: Record<UsageReport['groupBy'], Sql> = {
  day: sql`u.day`,
  // Drafts are no agent that anyone could read.
  agent: sql`(case when ${isOfDrafts(sql`u.agent_id`)} then '' else u.agent_id::text end)`,
  environment: sql`u.environment`,
  model: sql`u.model`,
  endUser: sql`u.end_user_id`,
  apiKey: sql`u.key_id`,
};

// A chart with more is unreadable. It also bounds the response.
const MAX_SPLIT = 12;

/** The parts of each day: of the groups that cost most in the whole period, and of all others together. */
async function splitDays(
  ctx: Context,
  calls: Sql,
  splitBy: NonNullable<Input<'getUsage'>['splitBy']>,
): Promise<Map<string, NonNullable<UsageGroup['split']>>> {
  const column = columns[splitBy];
  const rows = await ctx.db.query<Row & { day: string; group: string | null }>(sql`
    with used as (${calls}
    ), grouped as (
      select u.day, ${column} as key, sum(u.input_tokens) as input_tokens, sum(u.output_tokens) as output_tokens,
        sum(u.cached_tokens) as cached_tokens, sum(u.cache_write_tokens) as cache_write_tokens,
        sum(u.web_searches) as web_searches, sum(u.steps) as steps, sum(u.unpriced_steps) as unpriced_steps, sum(u.cost_usd) as cost_usd
      from used u group by 1, 2 having sum(u.steps) > 0
    ), places as (
      select g.key, row_number() over (
        order by sum(g.cost_usd) desc, sum(g.input_tokens + g.output_tokens) desc, g.key) as place
      from grouped g group by g.key
    )
    select g.day, case when p.place <= ${MAX_SPLIT} then g.key end as "group",
      least(p.place, ${MAX_SPLIT + 1}) as place, sum(g.input_tokens)::bigint as "inputTokens",
      sum(g.output_tokens)::bigint as "outputTokens", sum(g.cached_tokens)::bigint as "cachedTokens",
      sum(g.cache_write_tokens)::bigint as "cacheWriteTokens", sum(g.web_searches)::bigint as "webSearches", sum(g.steps)::bigint as steps,
      sum(g.unpriced_steps)::bigint as "unpricedSteps", sum(g.cost_usd) as "costUsd"
    from grouped g join places p on p.key = g.key
    group by 1, 2, 3 order by 1, 3`);
  const byDay = Map.groupBy(rows, ({ day }) => day);
  return new Map(
    [...byDay].map(([day, parts]) => [
      day,
      parts.map((row) => ({ group: row.group === null ? null : groupName(splitBy, row.group), ...sumOf(row) })),
    ]),
  );
}

function groupName(groupBy: UsageReport['groupBy'], group: string): string {
  if (group !== '' && groupBy === 'agent') return formatId('agt', group);
  return group !== '' && groupBy === 'apiKey' ? formatId('key', group) : group;
}

/** The calls of a period, and the sums of its days. `by`: what they are grouped by. */
function usedIn(
  organizationId: string,
  { from, to }: { from: Date; to: Date },
  by: UsageReport['groupBy'],
  environment: string | undefined,
  agentId: string | undefined,
  draft: boolean | undefined,
): Sql {
  const where = (row: Sql) => sql`
    ${environment === undefined ? empty : sql`and ${row}.environment = ${environment}`}
    ${agentId === undefined ? empty : sql`and ${row}.agent_id = ${draft ? draftsOf(agentId) : agentId}`}
    ${draft === undefined ? empty : sql`and ${isOfDrafts(sql`${row}.agent_id`)} = ${draft}`}`;
  return sql`
      select (c.occurred_at at time zone 'UTC')::date as day, c.agent_id, c.environment, c.model,
        coalesce(c.end_user_id, '') as end_user_id, coalesce(c.key_id::text, '') as key_id, c.input_tokens,
        c.output_tokens, c.cached_tokens, c.cache_write_tokens, c.web_searches, 1 as steps, case when c.cost_usd is null then 1 else 0 end as unpriced_steps,
        coalesce(c.cost_usd, 0) as cost_usd
      from model_usage c
      where c.organization_id = ${organizationId} and c.occurred_at >= ${from} and c.occurred_at < ${to}
        ${where(sql`c`)}
      union all
      select d.day, d.agent_id, d.environment, d.model, '', '', d.input_tokens, d.output_tokens, d.cached_tokens, d.cache_write_tokens,
        d.web_searches, d.steps, d.unpriced_steps, d.cost_usd
      from model_usage_days d
      where d.organization_id = ${organizationId} and d.day >= ${dayOf(from)}::date and d.day < ${dayOf(to)}::date
        ${where(sql`d`)}
      ${by === 'endUser' || by === 'apiKey' ? partsOf(by, organizationId, from, to, where) : empty}`;
}

/** Moves what each end user or key used from the sums without one to those of the end user or key. */
function partsOf(
  groupBy: 'endUser' | 'apiKey',
  organizationId: string,
  from: Date,
  to: Date,
  where: (row: Sql) => Sql,
): Sql {
  const [table, columns, part] =
    groupBy === 'endUser'
      ? [sql`model_usage_end_user_days`, sql`k.part, ''`, sql`d.end_user_id`]
      : [sql`model_usage_key_days`, sql`'', k.part`, sql`d.key_id::text`];
  return sql`
      union all
      select d.day, null, d.environment, null, ${columns}, k.sign * d.input_tokens, k.sign * d.output_tokens,
        k.sign * d.cached_tokens, k.sign * d.cache_write_tokens, k.sign * d.web_searches, k.sign * d.steps, k.sign * d.unpriced_steps, k.sign * d.cost_usd
      from ${table} d
      cross join lateral (values (${part}, 1), ('', -1)) k(part, sign)
      where d.organization_id = ${organizationId} and d.day >= ${dayOf(from)}::date and d.day < ${dayOf(to)}::date
        ${where(sql`d`)}`;
}

/** The names of keys, also of deleted ones; of a key that was renamed, its last name. */
async function keyNames(ctx: Context, keyIds: readonly string[]): Promise<Map<string, string>> {
  const rows = await ctx.db.query<{ keyId: string; name: string }>(sql`
    select k.key_id as "keyId", coalesce(
      (select a.name from api_keys a where a.organization_id = ${ctx.organizationId} and a.key_id = k.key_id),
      (select d.key_name from model_usage_key_days d
        where d.organization_id = ${ctx.organizationId} and d.key_id = k.key_id and d.key_name is not null
        order by d.day desc limit 1)) as name
    from unnest(${[...keyIds]}::uuid[]) k(key_id)`);
  return new Map(rows.map(({ keyId, name }) => [keyId, name]));
}

/** Whole UTC days, from the first that the period touches to the end of the last. */
function periodOf(input: Input<'getUsage'>, now: Date): { from: Date; to: Date } {
  const to = input.to === undefined ? now : instantOf(input.to, 'to');
  const from =
    input.from === undefined ? new Date(to.getTime() - DEFAULT_DAYS * DAY_MS) : instantOf(input.from, 'from');
  const milliseconds = to.getTime() - from.getTime();
  if (milliseconds <= 0) {
    throw invalidField('from', `must be before \`to\`${input.to === undefined ? ', which is now by default' : ''}`);
  }
  if (milliseconds > MAX_DAYS * DAY_MS) {
    throw invalidField('from', `must be at most ${MAX_DAYS} days before \`to\``);
  }
  const whole = (field: string, days: number) => instantOf(new Date(days * DAY_MS).toISOString(), field);
  return {
    from: whole('from', Math.floor(from.getTime() / DAY_MS)),
    to: whole('to', Math.ceil(to.getTime() / DAY_MS)),
  };
}

/** The UTC day of an instant: `2026-01-31`. */
function dayOf(instant: Date): string {
  return instant.toISOString().slice(0, 10);
}

/** With zeros for days without usage, so that a chart can be drawn from it directly. */
function everyDay(
  from: Date,
  to: Date,
  used: readonly UsageGroup[],
  split: ReadonlyMap<string, NonNullable<UsageGroup['split']>> | undefined,
): UsageGroup[] {
  const byDay = new Map(used.map((one) => [one.group, one]));
  const days: UsageGroup[] = [];
  for (let at = from.getTime(); at < to.getTime(); at += DAY_MS) {
    const group = dayOf(new Date(at));
    days.push({ ...(byDay.get(group) ?? { group, ...nothing }), ...(split && { split: split.get(group) ?? [] }) });
  }
  return days;
}

const nothing: UsageSum = {
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  steps: 0,
  unpricedSteps: 0,
  costUsd: null,
};

function sumOf(row: Row): UsageSum {
  const { inputTokens, outputTokens, cachedTokens, steps, unpricedSteps, costUsd } = row;
  return {
    inputTokens,
    outputTokens,
    cachedTokens,
    ...rareCounts(row),
    steps,
    unpricedSteps,
    costUsd: steps === unpricedSteps ? null : Number(costUsd),
  };
}
