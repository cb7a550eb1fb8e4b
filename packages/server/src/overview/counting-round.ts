// Counts of the installation that take a look-up or more for each organization: in rounds, a page of organizations at a time, so that a
// scrape takes no longer however many there are. A scrape reads pages for a while; with few organizations that is a whole round.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { change, isChange } from '../events/open-sessions.ts';
import type { Clock } from '../lib/clock.ts';
import type { RoundCounts } from '../observe/scrape.ts';

export interface CountingRoundOptions {
  /** The most sessions that are counted of a status in an environment, and of a subscription. */
  most?: number;
  /** Organizations. */
  page?: number;
}

// Takes some tens of milliseconds.
const PAGE = 1_000;
const MOST_COUNTED = 10_000;
// Records of an organization that wait for their number.
const MOST_PENDING = 500;
// With the other statements of a scrape, less than a scrape waits.
const TIMEOUT_MS = 1_000;
// One page at least.
const MOST_MS = 50;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
const AFTER_ALL = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const empty = (): RoundCounts => ({
  sessions: new Map(['idle', 'running', 'waiting'].map((status) => [status, 0])),
  backlog: new Map(['enabled', 'paused', 'disabled'].map((status) => [status, 0])),
});

/**
 * Returns a function that reads the next pages and returns the counts of the last round that is complete; undefined before the first is.
 * Rejects if a page takes too long; the next one is smaller, until a round is complete.
 */
export function createCountingRound(
  { db, clock }: { db: Db; clock: Pick<Clock, 'elapsedMs'> },
  { most = MOST_COUNTED, page = PAGE }: CountingRoundOptions = {},
): () => Promise<RoundCounts | undefined> {
  let after = BEFORE_ALL;
  let size = page;
  let counts = empty();
  let complete: RoundCounts | undefined;

  return async () => {
    const until = clock.elapsedMs() + MOST_MS;
    do {
      const from = after;
      const reading = db.transaction(async (tx) => {
        tx.write(sql`select set_config('statement_timeout', ${String(TIMEOUT_MS)}, true)`);
        tx.write(planForLookups);
        const last = await lastOfPage(tx, from, size);
        return { last, found: await countPage(tx, { after: from, last: last ?? AFTER_ALL }, most) };
      });
      const { last, found } = await reading.catch((error: unknown) => {
        size = Math.ceil(size / 4);
        throw error;
      });
      for (const { kind, status, count } of found) counts[kind].set(status, (counts[kind].get(status) ?? 0) + count);
      after = last ?? BEFORE_ALL;
      if (last !== undefined) continue;
      complete = counts;
      counts = empty();
      size = page;
      break;
    } while (clock.elapsedMs() < until);
    return complete;
  };
}

async function lastOfPage(tx: Tx, after: string, page: number): Promise<string | undefined> {
  const [row] = await tx.query<{ organizationId: string }>(sql`
    select h.organization_id as "organizationId" from event_heads h
    where h.organization_id > ${after} order by h.organization_id offset ${page - 1} limit 1`);
  return row?.organizationId;
}

interface Found {
  kind: keyof RoundCounts;
  status: string;
  count: number;
}

/**
 * Idle sessions are what is left of the open ones, whose number is kept (events/open-sessions.ts). They are counted where it is not known yet.
 */
async function countPage(tx: Tx, { after, last }: { after: string; last: string }, most: number): Promise<Found[]> {
  const [[sessions], backlog] = await Promise.all([
    tx.query<Record<string, number>>(sql`
      select coalesce(sum(r.count), 0)::bigint as running, coalesce(sum(w.count), 0)::bigint as waiting,
        coalesce(sum(case when h.open_sessions is null then i.count else greatest(o.count - r.count - w.count, 0) end), 0)::bigint as idle
      from event_heads h
      join environments e on e.organization_id = h.organization_id
      cross join lateral (
        select coalesce((h.open_sessions->>e.name)::bigint, 0) + coalesce(sum(x.change), 0) as count from (
          select ${change} as change, x.body->>'environment' as environment from events_pending x
          where x.organization_id = e.organization_id and x.event_id >= h.pending_from and ${isChange}
          limit ${MOST_PENDING}) x
        where x.environment = e.name) o
      cross join lateral (
        select count(*) as count from (
          select 1 from sessions s
          where s.organization_id = e.organization_id and s.environment = e.name and s.status = 'running'
          order by s.session_id limit ${most}) x) r
      cross join lateral (
        select count(*) as count from (
          select 1 from sessions s
          where s.organization_id = e.organization_id and s.environment = e.name and s.status = 'waiting'
          order by s.session_id limit ${most}) x) w
      cross join lateral (
        select count(*) as count from (
          select 1 from sessions s
          where s.organization_id = e.organization_id and s.environment = e.name and s.status = 'idle'
            and h.open_sessions is null
          order by s.session_id limit ${most}) x) i
      where h.organization_id > ${after} and h.organization_id <= ${last}
        and (h.open_sessions is null or o.count > 0)`),
    tx.query<{ status: string; count: number }>(sql`
      select w.status, sum(d.count)::bigint as count from webhook_subscriptions w
      cross join lateral (
        select count(*) as count from (
          select 1 from sessions s
          where s.organization_id = w.organization_id and s.delivery_subscription_id = w.webhook_subscription_id
            and s.delivery_due
          order by s.session_id limit ${most}) counted) d
      where w.organization_id > ${after} and w.organization_id <= ${last}
      group by w.status`),
  ]);
  return [
    ...Object.entries(sessions!).map(([status, count]) => ({ kind: 'sessions' as const, status, count })),
    ...backlog.map((row) => ({ kind: 'backlog' as const, ...row })),
  ];
}
