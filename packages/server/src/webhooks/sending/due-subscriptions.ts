// Which subscriptions have something that may be due, found from the work itself: an index has an entry for each session with chunks
// that wait, each retry of a delivery that is over, and each recovery. So a poll costs what waits, and a subscription with nothing
// to send costs nothing.
//
// A search looks at a bounded number of index entries. A page begins behind the subscription that the last page ended in, so
// however much waits for one subscription, the next page has another.
import sql, { type Sql } from 'sql-template-tag';
import type { Shards, Within } from '../../db/shards.ts';

interface SubscriptionKey {
  organizationId: string;
  webhookSubscriptionId: string;
}

/** Ids of subscriptions, of any node and in any state; the next call goes on where this one ended. */
export type DueSearch = () => Promise<Set<string>>;

export const SEARCH_PAGE_SIZE = 100;
const MAX_PAGES = 10;
const ZERO = '00000000-0000-0000-0000-000000000000';
const first: SubscriptionKey = { organizationId: ZERO, webhookSubscriptionId: ZERO };

export function createDueSearch({ query }: Pick<Shards, 'query'>): DueSearch {
  const walks = [
    walk('searching for due deliveries', nextWaiting),
    walk('searching for deliveries to resend', nextRedeliveries),
    walk('searching for recoveries', nextRecoveries),
  ];

  function walk(
    what: string,
    pageAfter: (last: SubscriptionKey, within: Within) => Sql,
  ): (found: Set<string>) => Promise<void> {
    let last = first;
    return async (found) => {
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page = await query<SubscriptionKey>(what, (within) => pageAfter(last, within));
        // Each server may have a page of its own.
        const rows = page.rows.toSorted(compareKeys).slice(0, SEARCH_PAGE_SIZE);
        for (const { webhookSubscriptionId } of rows) found.add(webhookSubscriptionId);
        const isLast = rows.length < SEARCH_PAGE_SIZE;
        last = isLast ? first : rows.at(-1)!;
        if (isLast) return;
      }
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
