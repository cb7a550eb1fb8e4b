// The events on the page: older ones page by page, newer ones as they are written.
//
// The newest number is read before the first page, and the log is followed from there; events that both return are shown once. New
// events wait while the user is scrolled down, so that nothing moves while they read.
import type { Event, EventFilters, Signalbox } from '@signalbox/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';

const PAGE_ROWS = 250;
// Combines events that arrive together into one update.
const GATHER_MS = 100;
const AGAIN_MS = 3_000;
// This close to the top, the user is not reading further down.
const TOP_PIXELS = 80;
// With more new events the page would grow without end, so the list is loaded again.
const MAX_NEW = 5_000;

export interface EventLog {
  events: readonly Event[] | undefined;
  error: unknown;
  retry: () => Promise<unknown>;
  /** How many new events are not shown yet. */
  waiting: number;
  showWaiting: () => void;
  hasOlder: boolean;
  isLoadingOlder: boolean;
  loadOlder: () => Promise<unknown>;
}

/** `beginAnew` is called when so many events arrived that the list should be loaded again. */
export function useEventLog(filters: EventFilters, beginAnew: () => void): EventLog {
  const { client, organizationId } = useOrganization();
  const query = useInfiniteQuery({
    queryKey: [organizationId, 'event-log', filters],
    initialPageParam: '',
    queryFn: async ({ pageParam, signal }) => {
      const head = pageParam === '' ? await newest(client, signal) : 0;
      const page = { limit: PAGE_ROWS, ...(pageParam && { cursor: pageParam }) };
      return { head, ...(await client.events.list({ ...filters, ...page }, { signal })) };
    },
    getNextPageParam: ({ hasMore, nextCursor }) => (hasMore ? nextCursor : undefined),
    // Past events never change.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const head = query.data?.pages[0]?.head;
  const { shown, waiting, showWaiting } = useNewer(client, filters, head, beginAnew);
  const pages = query.data?.pages;
  const events = useMemo(() => {
    if (!pages) return undefined;
    const older = pages.flatMap(({ data }) => data);
    const first = older[0]?.sequence ?? 0;
    return [...shown.filter(({ sequence }) => sequence > first), ...older];
  }, [pages, shown]);
  return {
    events,
    error: query.error,
    retry: () => (pages ? query.fetchNextPage() : query.refetch()),
    waiting: waiting.length,
    showWaiting,
    hasOlder: query.hasNextPage,
    isLoadingOlder: query.isFetchingNextPage,
    loadOlder: () => query.fetchNextPage(),
  };
}

async function newest(client: Signalbox, signal: AbortSignal): Promise<number> {
  const { data } = await client.events.list({ limit: 1 }, { signal });
  return data[0]?.sequence ?? 0;
}

interface Newer {
  /** Both are newest first. */
  shown: readonly Event[];
  waiting: readonly Event[];
}

const nothing: Newer = { shown: [], waiting: [] };

function useNewer(client: Signalbox, filters: EventFilters, head: number | undefined, beginAnew: () => void) {
  const [newer, setNewer] = useState<Newer>(nothing);
  const wanted = useRef({ filters, beginAnew });
  wanted.current = { filters, beginAnew };
  const showWaiting = () => setNewer(all);

  useEffect(() => {
    if (head === undefined || wanted.current.filters.until !== undefined) return;
    const over = new AbortController();
    let arrived: Event[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const take = () => {
      timer = undefined;
      const some = arrived.reverse();
      arrived = [];
      setNewer((before) => {
        const next = { shown: before.shown, waiting: [...some, ...before.waiting] };
        return scrollY < TOP_PIXELS ? all(next) : next;
      });
    };
    void follow(client, wanted.current.filters, head, over.signal, (event) => {
      arrived.push(event);
      timer ??= setTimeout(take, GATHER_MS);
    });
    const onScroll = () => scrollY < TOP_PIXELS && setNewer(all);
    addEventListener('scroll', onScroll, { passive: true });
    return () => {
      over.abort();
      clearTimeout(timer);
      removeEventListener('scroll', onScroll);
    };
  }, [client, head]);

  const tooMany = newer.shown.length + newer.waiting.length > MAX_NEW;
  useEffect(() => {
    if (tooMany) wanted.current.beginAnew();
  }, [tooMany]);
  return { ...newer, showWaiting };
}

function all(newer: Newer): Newer {
  if (newer.waiting.length === 0) return newer;
  return { shown: [...newer.waiting, ...newer.shown], waiting: [] };
}

async function follow(
  client: Signalbox,
  filters: EventFilters,
  head: number,
  signal: AbortSignal,
  note: (event: Event) => void,
): Promise<void> {
  let afterSequence = head;
  while (!signal.aborted) {
    try {
      for await (const event of client.events.follow({ ...filters, afterSequence }, { signal })) {
        afterSequence = event.sequence;
        note(event);
      }
    } catch {
      // The service is unreachable, or the user signed out: the next request reports it.
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}
