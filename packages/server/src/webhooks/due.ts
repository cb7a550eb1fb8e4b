// Finding what is due without a wake-up: retries whose time has come, and Sessions with chunks that wait.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';

/** Where to look: a subscription that may be sent to, and the Session behind which its last page ended. */
export interface Place {
  organizationId: string;
  environment: string;
  webhookSubscriptionId: string;
  afterSessionId: string;
}

/** One page of a subscription. Pages go round and round, so a long row of Sessions that wait for retries costs little a time. */
export interface Page {
  /** With chunks that wait, and no retry to wait for. */
  ready: string[];
  /** Whose retry is due. */
  retries: string[];
  /** Whose retry may not be due yet. */
  waiting: string[];
  /** Undefined where this was the last page of the round. */
  lastSessionId: string | undefined;
}

/** Sorts before every other. */
export const beforeAllSessions = '00000000-0000-0000-0000-000000000000';

export const PAGE_SIZE = 250;

interface Row {
  n: number;
  sessionIds: string[];
  hasRetry: boolean[] | null;
}

/** A page for each place. Reads across organizations, without locks: what is found is taken by its own subscription. */
export async function findDue(db: Db, places: readonly Place[], now: Date): Promise<Page[]> {
  if (places.length === 0) return [];
  const organizations = places.map(({ organizationId }) => organizationId);
  const [waiting, retrying] = await Promise.all([
    db.query<Row>(sql`
      select h.n, array_agg(s.session_id order by s.session_id) as "sessionIds",
        array_agg(d.next_attempt_at is not null order by s.session_id) as "hasRetry"
      from unnest(${organizations}::uuid[], ${places.map(({ environment }) => environment)}::text[],
        ${places.map(({ webhookSubscriptionId }) => webhookSubscriptionId)}::uuid[],
        ${places.map(({ afterSessionId }) => afterSessionId)}::uuid[]) with ordinality as h(org, environment, id, after, n)
      cross join lateral (
        select x.session_id, x.delivery_id from sessions x
        where x.organization_id = h.org and x.environment = h.environment and x.delivery_due and x.session_id > h.after
        order by x.session_id limit ${PAGE_SIZE}) s
      left join webhook_deliveries d
        on d.organization_id = h.org and d.webhook_subscription_id = h.id and d.delivery_id = s.delivery_id
      group by h.n`),
    db.query<Row>(sql`
      select h.n, array_agg(d.session_id) as "sessionIds", null as "hasRetry"
      from unnest(${organizations}::uuid[],
        ${places.map(({ webhookSubscriptionId }) => webhookSubscriptionId)}::uuid[]) with ordinality as h(org, id, n)
      cross join lateral (
        select x.session_id from webhook_deliveries x
        where x.organization_id = h.org and x.webhook_subscription_id = h.id and x.next_attempt_at <= ${now}
        order by x.next_attempt_at limit ${PAGE_SIZE}) d
      group by h.n`),
  ]);
  const pages = places.map((): Page => ({ ready: [], retries: [], waiting: [], lastSessionId: undefined }));
  for (const { n, sessionIds, hasRetry } of waiting) {
    const page = pages[n - 1]!;
    page.ready = sessionIds.filter((_, index) => !hasRetry?.[index]);
    page.waiting = sessionIds.filter((_, index) => hasRetry?.[index]);
    if (sessionIds.length === PAGE_SIZE) page.lastSessionId = sessionIds.at(-1);
  }
  for (const { n, sessionIds } of retrying) pages[n - 1]!.retries = sessionIds;
  return pages;
}
