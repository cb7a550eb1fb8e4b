// The organization of the page: its client, the user's permissions, and hooks for queries and changes.
import type { Permission } from '@signalbox/client';
import { type Page, Signalbox } from '@signalbox/client';
import type { Account, Membership } from '@signalbox/contract/console';
import {
  type QueryKey,
  type UseInfiniteQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useMemo } from 'react';

export interface Organization extends Membership {
  client: Signalbox;
  user: NonNullable<Account['user']>;
  /** Whether the user's role includes this permission. */
  may(permission: Permission): boolean;
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
      client: new Signalbox({
        baseUrl: location.origin,
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

/** A query of the API. The first part of the key is the noun by which events invalidate it (live.ts). */
export function useApiQuery<T>(
  key: QueryKey,
  ask: (client: Signalbox) => PromiseLike<T>,
  { enabled = true, everyMs }: { enabled?: boolean } & Again = {},
) {
  const { organizationId, client } = useOrganization();
  return useQuery({
    queryKey: [organizationId, ...key],
    queryFn: async () => await ask(client),
    enabled,
    refetchInterval: everyMs ?? false,
  });
}

interface Again {
  /** Polling interval while the page is visible, for data that changes without an event. */
  everyMs?: number | undefined;
}

export type ListQuery<T> = UseInfiniteQueryResult<T[]>;

const PAGE_ROWS = 50;

/** A list, page by page. */
export function useList<T>(
  key: QueryKey,
  ask: (client: Signalbox, page: { limit: number; cursor?: string }) => PromiseLike<Page<T>>,
  { everyMs }: Again = {},
): ListQuery<T> {
  const { organizationId, client } = useOrganization();
  return useInfiniteQuery({
    queryKey: [organizationId, ...key, 'list'],
    initialPageParam: '',
    queryFn: async ({ pageParam }) => await ask(client, { limit: PAGE_ROWS, ...(pageParam && { cursor: pageParam }) }),
    getNextPageParam: (page) => (page.hasMore ? page.nextCursor : undefined),
    // A user who loaded more pages is reading them: no polling then.
    refetchInterval: ({ state }) => (state.data && state.data.pages.length > 1 ? false : (everyMs ?? false)),
    select: ({ pages }) => pages.flatMap(({ data }) => data),
  });
}

/** A change. Afterwards the queries of these nouns are invalidated. `mutateAsync` rejects if it is refused. */
export function useApiMutation<Input, Output>(
  change: (client: Signalbox, input: Input) => PromiseLike<Output>,
  nouns: readonly string[],
) {
  const { organizationId, client } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (input: Input) => await change(client, input),
    onSuccess: () => Promise.all(nouns.map((noun) => queries.invalidateQueries({ queryKey: [organizationId, noun] }))),
  });
}
