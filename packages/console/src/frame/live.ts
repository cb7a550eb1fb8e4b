// Pages stay current through the event log: one long poll follows it, and each event invalidates the queries about its resource.
import type { Event, Signalbox } from '@signalbox/client';
import { type QueryClient, type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { noteRefusal } from '../data/account.ts';
import { useOrganization } from '../data/organization.tsx';
import { currentTime } from '../ui/time.tsx';

/** The queries to invalidate after an event, by the first part of its type. */
const stale: Record<string, readonly string[]> = {
  api_key: ['keys', 'overview'],
  agent: ['agents'],
  environment: ['environments'],
  environment_secret: ['secrets', 'environments'],
  // Lists of schedules and of their runs show how the sessions went.
  session: ['sessions', 'usage', 'analytics', 'schedules'],
  tool_call: ['sessions'],
  approval: ['approvals', 'sessions', 'overview'],
  schedule: ['schedules', 'overview'],
  webhook_subscription: ['webhooks', 'overview'],
  webhook_delivery: ['webhooks', 'overview'],
  budget: ['budgets'],
  user: ['people'],
  organization: ['people', 'organization'],
};
// Events that arrive together cause one refresh.
const GATHER_MS = 300;
const AGAIN_MS = 3000;
// More than are usually written while a page sends its first requests. On a busier installation more events follow anyway.
const LATEST = 10;
// Seconds would do, but the browser's clock may be wrong.
const RECENT_MS = 5 * 60_000;

/** Follows the organization's event log while the component is mounted. */
export function useLive(): void {
  const { client, organizationId } = useOrganization();
  const queries = useQueryClient();
  useEffect(() => {
    const over = new AbortController();
    const { note, stop } = createRefresher((noun) => refreshLoaded(queries, [organizationId, noun]));
    void follow(client, over.signal, note);
    return () => {
      over.abort();
      stop();
    };
  }, [client, organizationId, queries]);
}

/** Waits for what is loading, such as the next page of a list: a refresh would drop it, and nothing would load it again. */
export async function refreshLoaded(queries: QueryClient, queryKey: QueryKey): Promise<void> {
  const loading = queries.getQueryCache().findAll({ queryKey, fetchStatus: 'fetching' });
  await Promise.allSettled(loading.map(({ promise }) => promise));
  await queries.invalidateQueries({ queryKey });
}

/**
 * Refreshes what events are about. A noun waits for its refresh before, which the next one would start again: while events keep coming, no
 * response would ever be shown.
 */
export function createRefresher(refresh: (noun: string) => Promise<unknown>) {
  const noted = new Set<string>();
  const running = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  function start(): void {
    timer = undefined;
    for (const noun of noted) {
      if (running.has(noun)) continue;
      noted.delete(noun);
      running.add(noun);
      void refresh(noun).finally(() => {
        running.delete(noun);
        if (noted.has(noun)) schedule();
      });
    }
  }
  function schedule(): void {
    if (!isOver) timer ??= setTimeout(start, GATHER_MS);
  }
  return {
    note(nouns: readonly string[]): void {
      for (const noun of nouns) noted.add(noun);
      schedule();
    },
    stop(): void {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/** The page's own requests run at the same time, and may have been answered before the newest events were written. */
export function nounsOfLatest(events: readonly Pick<Event, 'type' | 'occurredAt'>[], nowMs: number): string[] {
  return events.filter(({ occurredAt }) => nowMs - Date.parse(occurredAt) < RECENT_MS).flatMap(nounsOf);
}

function nounsOf({ type }: Pick<Event, 'type'>): readonly string[] {
  return ['events', ...(stale[type.split('.')[0]!] ?? [])];
}

async function follow(client: Signalbox, signal: AbortSignal, note: (nouns: readonly string[]) => void): Promise<void> {
  let afterSequence: number | undefined;
  while (!signal.aborted) {
    try {
      if (afterSequence === undefined) {
        const { data } = await client.events.list({ limit: LATEST }, { signal });
        afterSequence = data[0]?.sequence ?? 0;
        note(nounsOfLatest(data, currentTime()));
      }
      for await (const event of client.events.follow({ afterSequence }, { signal })) {
        afterSequence = event.sequence;
        note(nounsOf(event));
      }
    } catch (error) {
      if (!signal.aborted) noteRefusal(error);
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}
