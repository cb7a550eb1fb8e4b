// The current state of an organization: a few counts. Each reads only an index and counts no further than `maxCount`, or looks at no more
// than a thousand rows. Idle sessions, of which there may be any number, are not counted: the others are subtracted from the number of open
// sessions, which is kept (events/open-sessions.ts).
import { type Input, maxCount, type Overview, type Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { countBlocked } from '../deliveries/destinations/blocked.ts';
import { openSessionsNow, openStatuses } from '../events/open-sessions.ts';
import type { PoolContext } from '../lib/context.ts';
import { countFailing } from '../schedules/runs.ts';

const HOUR_MS = 3_600_000;
const ENDED_WITHIN_MS = 24 * HOUR_MS;
// Leaves time to replace a key even if the warning appears on a weekend.
const SOON_MS = 14 * 24 * HOUR_MS;

interface Row {
  name: string;
  /** Null if it is not known. */
  count: number | null;
}

/**
 * Rows of `open`, which is null if the number is not known, `running` and `waiting`, in one snapshot. Only environments with open sessions
 * are looked at. Those that run or wait are few by nature, and no more than `maxCount` are counted.
 */
function openByStatus(organizationId: string, environment: string | undefined): Sql {
  return sql`
    with c as materialized (${openSessionsNow(organizationId)}),
      o as materialized (
        select c.environment, sum(c.change)::int as count from c
        where c.environment is not null ${environment === undefined ? empty : sql`and c.environment = ${environment}`}
        group by c.environment having sum(c.change) > 0)
    select 'open' as name, case when bool_and(c."isKept") then (select coalesce(sum(o.count), 0)::int from o) end as count from c
    union all
    select k.name, n.count
    from unnest(array['running', 'waiting']) as k(name)
    cross join lateral (
      select count(*)::int as count from (
        select 1 from o
        cross join lateral (
          select 1 from sessions s
          where s.organization_id = ${organizationId} and s.environment = o.environment and s.status = k.name
          order by s.session_id limit ${maxCount}) x
        limit ${maxCount}) y) n`;
}

/** The overview of the organization, or of one environment and the keys that have access to it. */
export async function getOverview(
  ctx: PoolContext,
  { environment }: Input<'getOverview'>,
): Promise<Result<'getOverview'>> {
  const { db, clock, organizationId } = ctx;
  const now = clock.now().getTime();
  const inIt = (column: Sql) => (environment === undefined ? empty : sql`and ${column} = ${environment}`);

  /**
   * Counts each environment separately, as the indexes require, and reads no more of them in total than it counts. `order` is that of
   * the index with these columns, so no plan for another one is cheaper, whatever PostgreSQL knows of the tables.
   */
  const sessions = (statuses: string[], order: Sql, when = empty) => sql`
    select k.name, c.count
    from unnest(${statuses}::text[]) as k(name)
    cross join lateral (
      select count(*)::int as count from (
        select 1 from environments e
        cross join lateral (
          select 1 from sessions s
          where s.organization_id = ${organizationId} and s.environment = e.name and s.status = k.name ${when}
          order by ${order} limit ${maxCount}) x
        where e.organization_id = ${organizationId} ${inIt(sql`e.name`)}
        limit ${maxCount}) y) c`;

  const ended = sessions(
    ['completed', 'failed', 'cancelled'],
    sql`s.ended_at`,
    sql`and s.ended_at >= ${new Date(now - ENDED_WITHIN_MS)}`,
  );
  const [, ...groups] = await db.batch<Row>([
    planForLookups,
    openByStatus(organizationId, environment),
    ended,
    sql`
      select 'pendingApprovals' as name, count(*)::int as count from (
        select 1 from environments e
        cross join lateral (
          select 1 from approvals a
          where a.organization_id = ${organizationId} and a.environment = e.name and a.status = 'pending'
          order by a.operation_id limit ${maxCount}) x
        where e.organization_id = ${organizationId} ${inIt(sql`e.name`)}
        limit ${maxCount}) y`,
    sql`
      select case when w.status = 'disabled' then 'disabled' when w.degraded then 'degraded' else 'failing' end as name,
        count(*)::int as count
      from webhook_subscriptions w
      where w.organization_id = ${organizationId} ${inIt(sql`w.environment`)}
        and (w.status = 'disabled' or (w.status = 'enabled' and w.failing_since is not null))
      group by 1`,
    sql`
      select 'waitingDeliveries' as name, count(*)::int as count from (
        select 1 from webhook_subscriptions w
        cross join lateral (
          select 1 from pending_deliveries d
          where d.organization_id = ${organizationId} and d.webhook_subscription_id = w.webhook_subscription_id
            and d.next_attempt_at is not null
          limit ${maxCount}) x
        where w.organization_id = ${organizationId} ${inIt(sql`w.environment`)}
        limit ${maxCount}) y`,
    sql`
      select 'keysExpiringSoon' as name, count(*)::int as count from api_keys k
      where k.organization_id = ${organizationId} and k.deleted_at is null
        and k.expires_at > ${new Date(now)} and k.expires_at <= ${new Date(now + SOON_MS)}
        ${environment === undefined ? empty : sql`and (k.environments is null or ${environment} = any(k.environments))`}`,
    sql`select 'failingSchedules' as name, c.count from (${countFailing(organizationId, environment)}) c`,
  ]);
  const counts = new Map(groups.flat().map(({ name, count }) => [name, count]));
  const [open, running, waiting] = [counts.get('open'), counts.get('running')!, counts.get('waiting')!];
  if (typeof open === 'number' && running < maxCount && waiting < maxCount) {
    counts.set('idle', Math.max(0, open - running - waiting));
  } else {
    const [, counted = []] = await db.batch<Row>([planForLookups, sessions([...openStatuses], sql`s.session_id`)]);
    for (const { name, count } of counted) counts.set(name, count);
  }
  const count = (name: string) => Math.min(counts.get(name) ?? 0, maxCount);
  const counted = <N extends string>(...names: N[]) =>
    Object.fromEntries(names.map((name) => [name, count(name)])) as Record<N, number>;
  const overview: Overview = {
    sessions: counted('idle', 'running', 'waiting', 'completed', 'failed', 'cancelled'),
    webhooks: {
      blocked: await countBlocked(ctx, environment),
      ...counted('failing', 'degraded', 'disabled', 'waitingDeliveries'),
    },
    schedules: { failing: count('failingSchedules') },
    ...counted('pendingApprovals', 'keysExpiringSoon'),
  };
  return { overview };
}
