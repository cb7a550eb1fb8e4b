// The organization of the page: its client, the user's permissions, and hooks for queries and changes.
import type { Permission } from '@signalbox/client';
import { type Page, Signalbox } from '@signalbox/client';
import type { Account, Membership } from '@signalbox/contract/console';
import {
  type QueryKey,
  type QueryMeta,
  type UseInfiniteQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo } from 'react';
import { observedFetch } from '../lib/reachability.ts';

export interface Organization extends Membership {
  client: Signalbox;
  user: NonNullable<Account['user']>;
  /** Whether the user's role includes this permission. */
  may(permission: Permission): boolean;
  /** Whether the user's role includes deciding approvals. */
  mayDecide: boolean;
  /** Reads the account again, after the user's own role or a name changed. */
  refreshAccount(): Promise<void>;
}

const OrganizationContext = createContext<Organization | undefined>(undefined);
const order: readonly Permission[] = ['read', 'write', 'admin'];

export function OrganizationProvider({
  account,
  membership,
  children,
}: {
  account: Account;
  membership: Membership;
  children: ReactNode;
}) {
  const { user, csrfToken } = account;
  const queries = useQueryClient();
  const organization = useMemo(
    (): Organization => ({
      ...membership,
      user: user!,
      refreshAccount: () => queries.invalidateQueries({ queryKey: ['account'] }),
      may: (permission) => order.indexOf(membership.permission) >= order.indexOf(permission),
      // A node of the release before does not answer it, and has no approvers.
      mayDecide: membership.mayDecide ?? membership.permission !== 'read',
      client: new Signalbox({
        baseUrl: location.origin,
        fetch: observedFetch,
        session: { organizationId: membership.organizationId, csrfToken: csrfToken! },
      }),
    }),
    [membership, user, csrfToken, queries],
  );
  return <OrganizationContext value={organization}>{children}</OrganizationContext>;
}

export function useOrganization(): Organization {
  return useContext(OrganizationContext)!;
}

/**
 * A query of the API. The first part of the key is the noun by which events invalidate it (frame/live.ts). `keeps`: while a changed key
 * loads, the data is that of the key before, unless it is of another environment. `until`: once this is true of the data, nothing asks
 * for it again.
 */
export function useApiQuery<T>(
  key: QueryKey,
  ask: (client: Signalbox) => PromiseLike<T>,
  {
    enabled = true,
    everyMs,
    keeps,
    until,
  }: { enabled?: boolean; keeps?: { environment?: string | undefined }; until?: (data: T) => boolean } & Again = {},
) {
  const { organizationId, client } = useOrganization();
  return useQuery({
    queryKey: [organizationId, ...key],
    queryFn: async () => await ask(client),
    enabled: ({ state: { data } }) => enabled && !(data !== undefined && until?.(data as T)),
    refetchInterval: everyMs ?? false,
    ...(keeps && { meta: keeps, placeholderData: keepWithin(keeps.environment) }),
  });
}

/** `keepPreviousData` of one environment: what another one has would be false. */
function keepWithin(environment: string | undefined) {
  return <T,>(before: T | undefined, of: { meta?: QueryMeta | undefined } | undefined): T | undefined =>
    of?.meta?.environment === environment ? before : undefined;
}

interface Again {
  /** Polling interval while the page is visible, for data that changes without an event. */
  everyMs?: number | undefined;
}

export type ListQuery<T> = UseInfiniteQueryResult<T[]> & {
  /** Loads a list that is too long to be kept current from its beginning. */
  reload?: () => void;
};

const PAGE_ROWS = 50;
/** A longer list stays as it was loaded: all pages would be read again after each event. */
export const MAX_LIVE_ROWS = 4 * PAGE_ROWS;

/** A list, page by page. */
export function useList<T>(
  key: QueryKey,
  ask: (client: Signalbox, page: { limit: number; cursor?: string }) => PromiseLike<Page<T>>,
  { everyMs }: Again = {},
): ListQuery<T> {
  const { organizationId, client } = useOrganization();
  const queries = useQueryClient();
  const queryKey = [organizationId, ...key, 'list'];
  const query = useInfiniteQuery({
    queryKey,
    initialPageParam: '',
    queryFn: async ({ pageParam }) => await ask(client, { limit: PAGE_ROWS, ...(pageParam && { cursor: pageParam }) }),
    getNextPageParam: (page) => (page.hasMore ? page.nextCursor : undefined),
    staleTime: ({ state }) => (isLong(state.data) ? 'static' : 0),
    // A user who loaded more pages is reading them: no polling then.
    refetchInterval: ({ state }) => (state.data && state.data.pages.length > 1 ? false : (everyMs ?? false)),
    select: rowsOf,
  });
  const reload = () => void queries.resetQueries({ queryKey, exact: true });
  return { ...query, ...((query.data?.length ?? 0) > MAX_LIVE_ROWS && { reload }) };
}

function isLong(data: { pages: readonly unknown[] } | undefined): boolean {
  return data !== undefined && data.pages.length * PAGE_ROWS > MAX_LIVE_ROWS;
}

/**
 * Loads the pages after those that are loaded as long as `isMissing`: what the user looks for is not on them. After a failed page only
 * the user tries again.
 */
export function useMorePages(
  { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage }: ListQuery<unknown>,
  isMissing: boolean,
): void {
  const loadsMore = isMissing && hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (loadsMore) void fetchNextPage();
  }, [loadsMore, fetchNextPage]);
}

/** One function, so that rows are made again only if pages have changed. */
function rowsOf<T>({ pages }: { pages: readonly Page<T>[] }): T[] {
  return pages.flatMap(({ data }) => data);
}

/** What a change shows before the service has answered. */
interface Optimistic<Input> {
  /** The queries whose data changes at once: the first parts of their keys, below the organization's. */
  key: QueryKey;
  /** The data as it will be. Undefined leaves it as it is. The list of `useList` is pages of `data`. */
  apply: (data: unknown, input: Input) => unknown;
}

/**
 * A change. Afterwards the queries of these nouns are invalidated. `mutateAsync` rejects if it is refused. `optimistic` is for changes
 * that are rarely refused: the page shows the result at once, and what was there before if it is refused.
 */
export function useApiMutation<Input, Output>(
  change: (client: Signalbox, input: Input) => PromiseLike<Output>,
  nouns: readonly string[],
  optimistic?: Optimistic<Input>,
) {
  const { organizationId, client } = useOrganization();
  const queries = useQueryClient();
  const refresh = () =>
    Promise.all(nouns.map((noun) => queries.invalidateQueries({ queryKey: [organizationId, noun] })));
  return useMutation({
    mutationFn: async (input: Input) => await change(client, input),
    onMutate: async (input: Input) => {
      if (!optimistic) return [];
      const filter = { queryKey: [organizationId, ...optimistic.key] };
      // A response that is on its way has the old data.
      await queries.cancelQueries(filter);
      const before = queries.getQueriesData(filter);
      queries.setQueriesData(filter, (data: unknown) =>
        data === undefined ? undefined : optimistic.apply(data, input),
      );
      return before;
    },
    onError: (_error, _input, before) => {
      for (const [key, data] of before ?? []) queries.setQueryData(key, data);
      if (optimistic) void refresh();
    },
    onSuccess: refresh,
  });
}

/** `apply` for the list of `useList`: each item changed, or removed if the result is undefined. */
export function inList<T, Input>(apply: (item: T, input: Input) => T | undefined) {
  return (data: unknown, input: Input): unknown => {
    if (typeof data !== 'object' || data === null || !('pages' in data)) return undefined;
    const { pages } = data as { pages: readonly Page<T>[] };
    return {
      ...data,
      pages: pages.map((page) => ({
        ...page,
        data: page.data.flatMap((item) => apply(item, input) ?? []),
      })),
    };
  };
}
