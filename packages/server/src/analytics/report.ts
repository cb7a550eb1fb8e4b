// Analytics of a period and of the one before it, as points and, if requested, by agent, environment or model.
//
// Points are read from the rows of their length, and sums from the fewest intervals that fill their period (intervals.ts); both also from
// the minutes that are not folded yet, and from `model_usage` for the model calls that compaction has not added yet. What is of no agent
// or model is read from the rows of all agents. It is one statement for each part, which reads few rows however long the period is.
import type { AnalyticsGroup, AnalyticsPoint, AnalyticsStep, AnalyticsSum, Input, Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { invalidField } from '../lib/api-error.ts';
import type { PoolContext } from '../lib/context.ts';
import { isOfDrafts } from '../lib/draft-version.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { addPacked, type Histogram, percentile } from './histogram.ts';
import { coverPeriod, DAY, FOLDED_MINUTE, HOUR, MINUTE, type Span } from './intervals.ts';
import { ALL_AGENTS, NO_ID } from './rows.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MAX_GROUPS = 200;
const MAX_FAILURES = 20;

/** `maxMs`: the longest period; `reachMs`: how long ago it may begin. What is kept includes the period before (fold.ts). */
const steps: Record<AnalyticsStep, { seconds: number; ms: number; maxMs: number; reachMs: number; limit: string }> = {
  minute: {
    seconds: FOLDED_MINUTE,
    ms: MINUTE_MS,
    maxMs: 2 * HOUR_MS,
    reachMs: 2 * HOUR_MS + MINUTE_MS,
    limit: 'in the last 2 hours',
  },
  hour: {
    seconds: HOUR,
    ms: HOUR_MS,
    maxMs: 31 * DAY_MS,
    reachMs: 62 * DAY_MS,
    limit: 'at most 31 days before `to`, in the last 62 days',
  },
  day: {
    seconds: DAY,
    ms: DAY_MS,
    maxMs: 366 * DAY_MS,
    reachMs: Number.POSITIVE_INFINITY,
    limit: 'at most 366 days before `to`',
  },
};

interface Sums {
  sessionsOpened: number;
  sessionsCompleted: number;
  sessionsFailed: number;
  sessionsCancelled: number;
  turns: number;
  turnsFailed: number;
  modelCallsFailed: number;
  toolCalls: number;
  toolCallsFailed: number;
  webhookAttempts: number;
  webhookAttemptsFailed: number;
  modelCalls: number;
  tokens: number;
  webSearches: number;
  costUsd: string;
  firstToken: number[];
  turnDuration: number[];
  webhookDuration: number[];
}

interface Period {
  from: Date;
  to: Date;
  step: AnalyticsStep;
}

export async function getAnalytics(ctx: PoolContext, input: Input<'getAnalytics'>): Promise<Result<'getAnalytics'>> {
  const { organizationId } = ctx;
  const period = periodOf(input, ctx.clock.now());
  const { from, to, step } = period;
  const stepMs = steps[step].ms;
  const agentId = input.agentId === undefined ? undefined : uuidOf('agt', input.agentId);
  const before = { ...period, from: new Date(2 * from.getTime() - to.getTime()), to: from };
  const { environment, groupBy } = input;
  const rows = (within: Period, of: AgentsOf, isPoints = false) =>
    rowsOf(organizationId, within, isPoints ? pointsOf(within) : spansOf(within), environment, of);
  const total: AgentsOf = agentId === undefined ? 'all' : { agentId };
  const each = agentId === undefined && groupBy !== 'environment' ? 'each' : total;
  const at = sql`date_bin(make_interval(secs => ${stepMs / 1000}), a.starts_at, ${from})`;
  const group = { agent: sql`a.agent_id`, environment: sql`a.environment`, model: sql`a.model` };
  const column = groupBy && group[groupBy];
  const [points, previous, groups, failures] = (await ctx.db.batch<unknown>([
    sumsBy(rows(period, total, true), at),
    sumsBy(rows(before, total), sql`0`),
    ...(column ? [sumsBy(rows(period, each), column, MAX_GROUPS), failuresBy(rows(period, each), column)] : []),
  ])) as [(Sums & { key: Date })[], Sums[], (Sums & { key: string })[]?, Failure[]?];
  const byPoint = new Map(points.map((row) => [row.key.getTime(), row]));
  const count = Math.round((to.getTime() - from.getTime()) / stepMs);
  const name = (key: string) => {
    if (groupBy !== 'agent') return key;
    return key === NO_ID ? '' : formatId('agt', key);
  };
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    step,
    total: viewSum(points),
    previous: viewSum(previous),
    points: Array.from({ length: count }, (_, index): AnalyticsPoint => {
      const at = from.getTime() + index * stepMs;
      const row = byPoint.get(at);
      return { at: new Date(at).toISOString(), ...viewSum(row ? [row] : []) };
    }),
    groups: (groups ?? []).map(
      (row): AnalyticsGroup => ({
        group: name(row.key),
        ...viewSum([row]),
        failures: (failures ?? [])
          .filter(({ key }) => key === row.key)
          .map(({ code, count, sessionId }) => ({ code, count, sessionId: sessionId && formatId('ses', sessionId) })),
      }),
    ),
    pricesDate: ctx.prices.builtInDate,
  };
}

/** Whole points. The default step is the finest with at most 60 of them. */
function periodOf(input: Input<'getAnalytics'>, now: Date): Period {
  const to = input.to === undefined ? now : instantOf(input.to, 'to');
  const from = input.from === undefined ? new Date(to.getTime() - DAY_MS) : instantOf(input.from, 'from');
  const lengthMs = to.getTime() - from.getTime();
  if (lengthMs <= 0) throw invalidField('from', 'must be before `to`');
  const isRecent = (step: AnalyticsStep) => now.getTime() - from.getTime() <= steps[step].reachMs;
  const step =
    input.step ?? (['minute', 'hour'] as const).find((one) => lengthMs <= 60 * steps[one].ms && isRecent(one)) ?? 'day';
  const { ms, maxMs, limit } = steps[step];
  if (lengthMs > maxMs || !isRecent(step)) throw invalidField('from', `must be ${limit} with step=${step}`);
  return {
    from: instantOf(new Date(Math.floor(from.getTime() / ms) * ms).toISOString(), 'from'),
    to: instantOf(new Date(Math.ceil(to.getTime() / ms) * ms).toISOString(), 'to'),
    step,
  };
}

/** The agents that rows are for: the sum of all, a row for each, or one. */
type AgentsOf = 'all' | 'each' | { agentId: string };

function pointsOf({ from, to, step }: Period): Span[] {
  return [{ seconds: steps[step].seconds, from, to }];
}

/** For a sum of the period. */
function spansOf(period: Period): Span[] {
  return period.step === 'minute' ? pointsOf(period) : coverPeriod(period.from, period.to);
}

/** The rows of a period, and the model calls that are not among them yet. Nothing of drafts. */
function rowsOf(
  organizationId: string,
  { from, to }: Period,
  folded: readonly Span[],
  environment: string | undefined,
  of: AgentsOf,
): Sql {
  const spans = [{ seconds: MINUTE, from, to }, ...folded];
  const ofEnvironment = (row: Sql) =>
    environment === undefined ? empty : sql`and ${row}.environment = ${environment}`;
  const ofAgent =
    typeof of === 'object' ? sql`= ${of.agentId}` : of === 'all' ? sql`= ${ALL_AGENTS}` : sql`<> ${ALL_AGENTS}`;
  // `offset 0` makes it a look-up by key for each span.
  return sql`
    select x.* from unnest(${spans.map(({ seconds }) => seconds)}::int[], ${spans.map((span) => span.from)}::timestamptz[],
      ${spans.map((span) => span.to)}::timestamptz[]) p(seconds, first, until)
    cross join lateral (
      select x.starts_at, x.environment, x.agent_id, x.model, x.error_code, x.sessions_opened, x.sessions_completed,
        x.sessions_failed, x.sessions_cancelled, x.turns, x.turns_failed, x.model_calls_failed, x.tool_calls,
        x.tool_calls_failed, x.webhook_attempts, x.webhook_attempts_failed, x.model_calls, x.tokens, x.web_searches, x.cost_usd,
        x.first_token_ms, x.turn_ms, x.webhook_ms, x.last_session_id
      from analytics x
      where x.organization_id = ${organizationId} and x.interval_seconds = p.seconds and x.starts_at >= p.first
        and x.starts_at < p.until and x.agent_id ${ofAgent} ${ofEnvironment(sql`x`)} offset 0) x
    union all
    select c.occurred_at, c.environment, c.agent_id, c.model, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, c.input_tokens + c.output_tokens,
      c.web_searches, coalesce(c.cost_usd, 0), '{}'::bigint[], '{}'::bigint[], '{}'::bigint[], null::uuid
    from model_usage c
    where c.organization_id = ${organizationId} and c.occurred_at >= ${from} and c.occurred_at < ${to}
      and not ${isOfDrafts(sql`c.agent_id`)} ${ofEnvironment(sql`c`)}
      ${typeof of === 'object' ? sql`and c.agent_id = ${of.agentId}` : empty}`;
}

/** `key`: an expression over the row `a`. With a limit, the keys with most failed turns, then with most turns. */
function sumsBy(rows: Sql, key: Sql, limit?: number): Sql {
  return sql`
    with a as materialized (select ${key} as key, a.* from (${rows}) a), sums as (
      select a.key, sum(a.sessions_opened)::bigint as sessions_opened, sum(a.sessions_completed)::bigint as sessions_completed,
        sum(a.sessions_failed)::bigint as sessions_failed, sum(a.sessions_cancelled)::bigint as sessions_cancelled,
        sum(a.turns)::bigint as turns, sum(a.turns_failed)::bigint as turns_failed,
        sum(a.model_calls_failed)::bigint as model_calls_failed, sum(a.tool_calls)::bigint as tool_calls,
        sum(a.tool_calls_failed)::bigint as tool_calls_failed, sum(a.webhook_attempts)::bigint as webhook_attempts,
        sum(a.webhook_attempts_failed)::bigint as webhook_attempts_failed, sum(a.model_calls)::bigint as model_calls,
        sum(a.tokens)::bigint as tokens, sum(a.web_searches)::bigint as web_searches, sum(a.cost_usd) as cost_usd
      from a group by 1
    ), buckets as (
      select h.key, h.kind, h.element >> 40 as bucket, sum(h.element & 1099511627775)::bigint as count
      from (
        select a.key, 1 as kind, unnest(a.first_token_ms) as element from a
        union all select a.key, 2, unnest(a.turn_ms) from a
        union all select a.key, 3, unnest(a.webhook_ms) from a) h
      group by 1, 2, 3
    ), histograms as (
      select b.key, array_agg((b.bucket << 40) + b.count) filter (where b.kind = 1) as first_token,
        array_agg((b.bucket << 40) + b.count) filter (where b.kind = 2) as turn,
        array_agg((b.bucket << 40) + b.count) filter (where b.kind = 3) as webhook
      from buckets b group by 1
    )
    select s.key, s.sessions_opened as "sessionsOpened", s.sessions_completed as "sessionsCompleted",
      s.sessions_failed as "sessionsFailed", s.sessions_cancelled as "sessionsCancelled", s.turns,
      s.turns_failed as "turnsFailed", s.model_calls_failed as "modelCallsFailed", s.tool_calls as "toolCalls",
      s.tool_calls_failed as "toolCallsFailed", s.webhook_attempts as "webhookAttempts",
      s.webhook_attempts_failed as "webhookAttemptsFailed", s.model_calls as "modelCalls", s.tokens, s.web_searches as "webSearches", s.cost_usd as "costUsd",
      coalesce(h.first_token, '{}') as "firstToken", coalesce(h.turn, '{}') as "turnDuration",
      coalesce(h.webhook, '{}') as "webhookDuration"
    from sums s left join histograms h on h.key = s.key
    ${limit === undefined ? empty : sql`order by s.turns_failed desc, s.turns desc, s.key limit ${limit}`}`;
}

interface Failure {
  key: string;
  code: string;
  count: number;
  sessionId: string | null;
}

function failuresBy(rows: Sql, key: Sql): Sql {
  return sql`
    select f.key, f.code, f.count, f.session_id as "sessionId" from (
      select ${key} as key, a.error_code as code, sum(a.turns_failed)::bigint as count,
        (array_agg(a.last_session_id order by a.starts_at desc) filter (where a.last_session_id is not null))[1] as session_id,
        row_number() over (partition by ${key} order by sum(a.turns_failed) desc, a.error_code) as place
      from (${rows}) a where a.error_code <> '' group by 1, 2) f
    where f.place <= ${MAX_FAILURES} order by f.key, f.place`;
}

function viewSum(rows: readonly Sums[]): AnalyticsSum {
  const sum = (name: Exclude<keyof Sums, 'costUsd' | 'firstToken' | 'turnDuration' | 'webhookDuration'>) =>
    rows.reduce((total, row) => total + row[name], 0);
  const latency = (name: 'firstToken' | 'turnDuration' | 'webhookDuration') => {
    const histogram: Histogram = new Map();
    for (const row of rows) addPacked(histogram, row[name]);
    const count = [...histogram.values()].reduce((total, one) => total + one, 0);
    return { count, p50Ms: percentile(histogram, 0.5), p95Ms: percentile(histogram, 0.95) };
  };
  return {
    sessions: {
      opened: sum('sessionsOpened'),
      completed: sum('sessionsCompleted'),
      failed: sum('sessionsFailed'),
      cancelled: sum('sessionsCancelled'),
    },
    turns: { ended: sum('turns'), failed: sum('turnsFailed') },
    turnDuration: latency('turnDuration'),
    firstToken: latency('firstToken'),
    modelCalls: { succeeded: sum('modelCalls'), failed: sum('modelCallsFailed') },
    toolCalls: { ended: sum('toolCalls'), failed: sum('toolCallsFailed') },
    webhooks: { attempts: sum('webhookAttempts'), failed: sum('webhookAttemptsFailed') },
    webhookDuration: latency('webhookDuration'),
    tokens: sum('tokens'),
    webSearches: sum('webSearches'),
    costUsd: Math.round(rows.reduce((total, { costUsd }) => total + Number(costUsd), 0) * 1e9) / 1e9,
  };
}
