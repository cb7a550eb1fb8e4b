// Who is signed in, and the calls beside /api/v1: signing in and out, links. Below /console/api, with the session cookie.
import { type ErrorCode, SignalboxError } from '@signalbox/client';
import type { Account, ConsoleBody, ConsoleCall, ConsoleResult } from '@signalbox/contract/console';
import { MutationCache, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query';

/** Who is refused may have been signed out, removed or given another role elsewhere: the page asks who they are now. */
export function noteRefusal(error: unknown): void {
  if (error instanceof SignalboxError && (error.status === 401 || error.status === 403)) {
    void queryClient.invalidateQueries({ queryKey: ['account'] });
  }
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteRefusal }),
  mutationCache: new MutationCache({ onError: noteRefusal }),
  defaultOptions: {
    queries: {
      // The event log tells what has changed (live.ts); this is the net under it.
      staleTime: 30_000,
      // The client has tried again already where that makes sense.
      retry: false,
      refetchOnWindowFocus: true,
    },
  },
});

export const accountQuery = queryOptions({
  queryKey: ['account'],
  queryFn: () => consoleCall('GET /account'),
  staleTime: 60_000,
});

/** Makes one of these calls; a refusal is a `SignalboxError` like the client's. */
export async function consoleCall<C extends ConsoleCall>(
  call: C,
  ...[body]: ConsoleBody<C> extends undefined ? [] : [body: ConsoleBody<C>]
): Promise<ConsoleResult<C>> {
  const [method, path] = call.split(' ') as [string, string];
  const csrfToken = queryClient.getQueryData<Account>(['account'])?.csrfToken;
  let response: Response;
  try {
    response = await fetch(`/console/api${path}`, {
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
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer as ConsoleResult<C>;
  throw new SignalboxError({
    status: response.status,
    code: (answer.code ?? 'unexpected_response') as ErrorCode,
    detail: answer.detail ?? answer.message ?? 'The service sent an unexpected response.',
    requestId: answer.requestId ?? response.headers.get('x-request-id'),
    errors: answer.errors ?? [],
  });
}

/** Takes an account that a call answered with as the present one; what was loaded for another person is forgotten. */
export function becomeAccount(account: Account): void {
  queryClient.clear();
  queryClient.setQueryData(['account'], account);
}

/** Ends the sign-in of this browser. Nothing that was loaded for the person stays in the page. */
export async function signOut(): Promise<void> {
  await consoleCall('POST /sign_out', {});
  location.assign('/console/sign-in');
}
