// Finding what is due without a wake-up: retries whose time has come, and Sessions with chunks that wait.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { Platform } from '../../platform.ts';

/** Where to look: a subscription that may be sent to, and the Session behind which its last page ended. */
export interface ScanPosition {
  organizationId: string;
  webhookSubscriptionId: string;
  afterSessionId: string;
}

/** One page of a subscription. Pages go round and round, so a long row of Sessions that wait for retries costs little a time. */
export interface DuePage {
  /** With chunks that wait, and no retry to wait for. */
  ready: string[];
  /** Whose retry is due. */
  retries: string[];
  /** Whose retry may not be due yet. */
  waiting: string[];
  /** Deliveries that are over and were asked for once more. */
  redeliveries: { sessionId: string; deliveryId: string }[];
  /** Whether something is to be recovered. */
  hasRecovery: boolean;
  /** Undefined where this was the last page of the round. */
  lastSessionId: string | undefined;
}

/** Sorts before every other. */
export const beforeAllSessions = '00000000-0000-0000-0000-000000000000';

export const PAGE_SIZE = 250;

interface WaitingRow {
  n: number;
  sessionIds: string[];
  hasRetry: boolean[];
}

interface RetryRow {
  n: number;
  sessionIds: string[];
  /** Null where it is the Session's own that waits. */
  redeliveries: (string | null)[];
}

/**
 * A page for each place, without locks: what is found is taken by its own subscription. Never rejects; no page for places that could
 * not be looked at.
 */
export async function findDue(
  { db, shards }: Pick<Platform, 'db' | 'shards'>,
  positions: readonly ScanPosition[],
  now: Date,
): Promise<Map<ScanPosition, DuePage>> {
  const pages = new Map<ScanPosition, DuePage>();
  await shards.eachInTime(
    'looking for due deliveries',
    positions,
    ({ organizationId }) => organizationId,
    async (group) => {
      for (const [index, page] of (await readPages(db, group, now)).entries()) pages.set(group[index]!, page);
    },
  );
  // What comes late is found by the poll.
  return new Map(pages);
}

async function readPages(db: Db, group: readonly ScanPosition[], now: Date): Promise<DuePage[]> {
  const organizationIds = [...new Set(group.map(({ organizationId }) => organizationId))];
  const [waiting, retrying, recovering] = await Promise.all([
    db.query<WaitingRow>(selectWaiting(group, organizationIds)),
    db.query<RetryRow>(selectRetries(group, organizationIds, now)),
    db.query<{ id: string }>(sql`
      select distinct r.webhook_subscription_id as id from webhook_recoveries r
      where r.organization_id = any(${organizationIds}::uuid[])`),
  ]);
  const recoveries = new Set(recovering.map(({ id }) => id));
  const found = group.map((position): DuePage => {
    const hasRecovery = recoveries.has(position.webhookSubscriptionId);
    return { ready: [], retries: [], waiting: [], redeliveries: [], hasRecovery, lastSessionId: undefined };
  });
  for (const { n, sessionIds, hasRetry } of waiting) {
    const page = found[n - 1]!;
    page.ready = sessionIds.filter((_, index) => !hasRetry[index]);
    page.waiting = sessionIds.filter((_, index) => hasRetry[index]);
    if (sessionIds.length === PAGE_SIZE) page.lastSessionId = sessionIds.at(-1);
  }
  for (const { n, sessionIds, redeliveries } of retrying) {
    const page = found[n - 1]!;
    for (const [index, sessionId] of sessionIds.entries()) {
      const deliveryId = redeliveries[index];
      if (deliveryId) page.redeliveries.push({ sessionId, deliveryId });
      else page.retries.push(sessionId);
    }
  }
  return found;
}

function selectWaiting(group: readonly ScanPosition[], organizationIds: readonly string[]): Sql {
  return sql`
    select h.n, array_agg(s.session_id order by s.session_id) as "sessionIds",
      array_agg(d.next_attempt_at is not null order by s.session_id) as "hasRetry"
    from unnest(${group.map(({ organizationId }) => organizationId)}::uuid[],
      ${group.map(({ webhookSubscriptionId }) => webhookSubscriptionId)}::uuid[],
      ${group.map(({ afterSessionId }) => afterSessionId)}::uuid[]) with ordinality as h(org, id, after, n)
    cross join lateral (
      select x.session_id, x.delivery_id from sessions x
      where x.organization_id = any(${[...organizationIds]}::uuid[]) and x.organization_id = h.org
        and x.delivery_subscription_id = h.id and x.delivery_due and x.session_id > h.after
      order by x.session_id limit ${PAGE_SIZE}) s
    left join lateral (
      -- As in progress.ts, the limit makes it a look-up for each Session rather than a join with all deliveries there are:
      -- measured, 5 to 10 ms rather than 100 where there are 50,000.
      select x.next_attempt_at from pending_deliveries x
      where x.organization_id = any(${[...organizationIds]}::uuid[]) and x.organization_id = h.org
        and x.webhook_subscription_id = h.id and x.delivery_id = s.delivery_id
      limit 1) d on true
    group by h.n`;
}

function selectRetries(group: readonly ScanPosition[], organizationIds: readonly string[], now: Date): Sql {
  return sql`
    select h.n, array_agg(d.session_id) as "sessionIds", array_agg(d.resend) as redeliveries
    from unnest(${group.map(({ organizationId }) => organizationId)}::uuid[],
      ${group.map(({ webhookSubscriptionId }) => webhookSubscriptionId)}::uuid[]) with ordinality as h(org, id, n)
    cross join lateral (
      (
        select x.session_id, null::uuid as resend, x.next_attempt_at from pending_deliveries x
        where x.organization_id = any(${[...organizationIds]}::uuid[]) and x.organization_id = h.org
          and x.webhook_subscription_id = h.id and x.next_attempt_at <= ${now}
        order by x.next_attempt_at limit ${PAGE_SIZE})
      union all
      (
        select x.session_id, x.delivery_id as resend, x.next_attempt_at from webhook_deliveries x
        where x.organization_id = any(${[...organizationIds]}::uuid[]) and x.organization_id = h.org
          and x.webhook_subscription_id = h.id and x.next_attempt_at <= ${now}
        order by x.next_attempt_at limit ${PAGE_SIZE})) d
    group by h.n`;
}
