// Finds the subscriptions that may have something due, by reading indexes that have an entry for each session with waiting chunks,
// each finished delivery to send again, and each recovery. The cost of a search depends on what waits; subscriptions with nothing
// to send cost nothing.
//
// A search reads a limited number of index entries. A page starts after the subscription in which the previous page ended, so a
// large backlog of one subscription does not hide the others.
import sql, { type Sql } from 'sql-template-tag';
import type { Shards, Within } from '../../db/shards.ts';
import type { Clock } from '../../lib/clock.ts';
import { paced } from '../../lib/paced.ts';

interface SubscriptionKey {
  organizationId: string;
  webhookSubscriptionId: string;
}

/** Returns ids of subscriptions, of any node and in any state. The next call continues where this one ended. */
export type DueSearch = () => Promise<Set<string>>;

export const SEARCH_PAGE_SIZE = 100;
const MAX_PAGES = 10;
const ZERO = '00000000-0000-0000-0000-000000000000';
const first: SubscriptionKey = { organizationId: ZERO, webhookSubscriptionId: ZERO };

export function createDueSearch({ query }: Pick<Shards, 'query'>, clock: Pick<Clock, 'elapsedMs'>): DueSearch {
  const walks = [
    // Every session goes through its index.
    paced(clock, walk('searching for due deliveries', nextWaiting), { again: (isOver) => !isOver }),
    walk('searching for deliveries to resend', nextRedeliveries),
    walk('searching for recoveries', nextRecoveries),
  ];

  /** Returns a function that adds the subscriptions of the next pages, and tells whether it has come to the end. */
  function walk(
    what: string,
    pageAfter: (last: SubscriptionKey, within: Within) => Sql,
  ): (found: Set<string>) => Promise<boolean> {
    let last = first;
    return async (found) => {
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page = await query<SubscriptionKey>(what, (within) => pageAfter(last, within));
        // Each server of a sharded database may return a whole page.
        const rows = page.rows.toSorted(compareKeys).slice(0, SEARCH_PAGE_SIZE);
        for (const { webhookSubscriptionId } of rows) found.add(webhookSubscriptionId);
        const isLast = rows.length < SEARCH_PAGE_SIZE;
        last = isLast ? first : rows.at(-1)!;
        if (isLast) return true;
      }
      return false;
    };
  }

  return async () => {
    const found = new Set<string>();
    await Promise.all(walks.map((next) => next(found)));
    return found;
  };
}

function nextWaiting({ organizationId, webhookSubscriptionId }: SubscriptionKey, within: Within): Sql {
  return sql`
    select organization_id as "organizationId", delivery_subscription_id as "webhookSubscriptionId" from sessions
    where delivery_due and (organization_id, delivery_subscription_id) > (${organizationId}, ${webhookSubscriptionId})
      ${within()}
    order by organization_id, delivery_subscription_id limit ${SEARCH_PAGE_SIZE}`;
}

function nextRedeliveries({ organizationId, webhookSubscriptionId }: SubscriptionKey, within: Within): Sql {
  return sql`
    select organization_id as "organizationId", webhook_subscription_id as "webhookSubscriptionId" from webhook_deliveries
    where next_attempt_at is not null
      and (organization_id, webhook_subscription_id) > (${organizationId}, ${webhookSubscriptionId}) ${within()}
    order by organization_id, webhook_subscription_id limit ${SEARCH_PAGE_SIZE}`;
}

function nextRecoveries({ organizationId, webhookSubscriptionId }: SubscriptionKey, within: Within): Sql {
  return sql`
    select organization_id as "organizationId", webhook_subscription_id as "webhookSubscriptionId" from webhook_recoveries
    where (organization_id, webhook_subscription_id) > (${organizationId}, ${webhookSubscriptionId}) ${within()}
    order by organization_id, webhook_subscription_id limit ${SEARCH_PAGE_SIZE}`;
}

function compareKeys(a: SubscriptionKey, b: SubscriptionKey): number {
  const [left, right] = [a, b].map((last) => `${last.organizationId} ${last.webhookSubscriptionId}`);
  return left! < right! ? -1 : Number(left! > right!);
}
