// The signed-in user, and the calls outside /api/v1: sign-in, sign-out and links. They are below /console/api and use the
// session cookie.
import { type ErrorCode, SignalboxError, TimeoutError } from '@signalbox/client';
import type { Account, ConsoleBody, ConsoleCall, ConsoleResult } from '@signalbox/contract/console';
import { MutationCache, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query';
import { noteFailure, observedFetch } from '../lib/reachability.ts';

/** After a refusal the user may be signed out, removed or have another role, so the account is read again. */
export function noteRefusal(error: unknown): void {
  if (error instanceof SignalboxError && (error.status === 401 || error.status === 403)) {
    void queryClient.invalidateQueries({ queryKey: ['account'] });
  }
}

function noteError(error: unknown): void {
  noteRefusal(error);
  if (error instanceof TimeoutError) noteFailure();
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteError }),
  mutationCache: new MutationCache({ onError: noteError }),
  defaultOptions: {
    queries: {
      // The event log reports changes (frame/live.ts). This covers what it misses.
      staleTime: 30_000,
      // The client has already retried if that made sense.
      retry: false,
      refetchOnWindowFocus: true,
    },
    // Without a network a change fails at once. Otherwise it would wait and be sent when the user no longer expects it.
    mutations: { networkMode: 'always' },
  },
});

export const accountQuery = queryOptions({
  queryKey: ['account'],
  queryFn: () => consoleCall('GET /account'),
  staleTime: 60_000,
});

/** Sends one of these calls. Throws a `SignalboxError`, as the client does. */
export async function consoleCall<C extends ConsoleCall>(
  call: C,
  ...[body]: ConsoleBody<C> extends undefined ? [] : [body: ConsoleBody<C>]
): Promise<ConsoleResult<C>> {
  const [method, path] = call.split(' ') as [string, string];
  const csrfToken = queryClient.getQueryData<Account>(['account'])?.csrfToken;
  let response: Response;
  try {
    response = await observedFetch(`/console/api${path}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(csrfToken && { 'x-signalbox-csrf': csrfToken }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch (error) {
    throw new SignalboxError({ status: 0, code: 'connection_error', detail: String(error) });
  }
  const result = await response.json().catch(() => ({}));
  if (response.ok) return result as ConsoleResult<C>;
  throw new SignalboxError({
    status: response.status,
    code: (result.code ?? 'unexpected_response') as ErrorCode,
    detail: result.detail ?? result.message ?? 'The service sent an unexpected response.',
    requestId: result.requestId ?? response.headers.get('x-request-id'),
    errors: result.errors ?? [],
  });
}

/** Makes an account from a response the current one, and drops everything loaded for another user. */
export function becomeAccount(account: Account): void {
  queryClient.clear();
  queryClient.setQueryData(['account'], account);
}

/** Signs out this browser. The page load drops everything that was loaded for the user. */
export async function signOut(): Promise<void> {
  await consoleCall('POST /sign_out', {});
  location.assign('/console/sign-in');
}
