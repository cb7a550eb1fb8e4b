// Finds the sessions that are due without a wake-up: those with a due retry, and those with chunks that wait.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { Platform } from '../../platform.ts';

/** Where the next page of a subscription starts: after the last session of the previous page. */
export interface ScanPosition {
  organizationId: string;
  webhookSubscriptionId: string;
  afterSessionId: string;
}

/** One page of a subscription. After the last page comes the first, so many sessions that wait for retries cost little per scan. */
export interface DuePage {
  /** Sessions with chunks that wait and no retry pending. */
  ready: string[];
  /** Sessions with a due retry. */
  retries: string[];
  /** Sessions whose retry may not be due yet. */
  waiting: string[];
  /** Finished deliveries to send again. */
  redeliveries: { sessionId: string; deliveryId: string }[];
  /** Whether a recovery is pending. */
  hasRecovery: boolean;
  /** Undefined on the last page. */
  lastSessionId: string | undefined;
}

/** Sorts before every session id. */
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
  /** The finished delivery to send again, for each session; null if it is a retry. */
  redeliveries: (string | null)[];
}

/** Reads a page for each position, without locks. Never rejects; positions that could not be read have no page. */
export async function findDue(
  { db, shards }: Pick<Platform, 'db' | 'shards'>,
  positions: readonly ScanPosition[],
  now: Date,
): Promise<Map<ScanPosition, DuePage>> {
  const pages = new Map<ScanPosition, DuePage>();
  await shards.forEachShardWithTimeout(
    'looking for due deliveries',
    positions,
    ({ organizationId }) => organizationId,
    async (group) => {
      for (const [index, page] of (await readPages(db, group, now)).entries()) pages.set(group[index]!, page);
    },
  );
  // A copy: a server that responds late must not change what the caller has. The next poll finds those pages.
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
      -- As in progress.ts, the limit forces a look-up for each session instead of a join with all deliveries. Measured with 50,000
      -- deliveries: 5 to 10 ms instead of 100.
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
