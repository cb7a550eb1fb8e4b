// Sign-ins, on top of better-auth (better-auth.ts), which only this file calls. Passkeys (passkeys.ts) and membership of organizations
// (memberships.ts) are separate.
//
// The cookie contains the sign-in's token and its signature under a key derived from the master key: read access to the database is not
// enough to forge one. Every sign-in has a new token, so none can be planted in a browser beforehand.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { OVER } from '../lib/aborted.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { ADDRESS_HEADER, CALLBACK_PATH, cookieNameOf, errorUrlOf, PROVIDER_ID } from './auth-names.ts';
import type { Auth, AuthOptions } from './better-auth.ts';
import { readCookie, setCookie } from './cookies.ts';
import type { ProviderAccount } from './provider-account.ts';

export { CALLBACK_PATH, PROVIDER_ID } from './auth-names.ts';

/** The sender of a request, before it is known who they are. */
export interface Visitor {
  readonly requestId: string;
  readonly ipAddress: string;
  readonly userAgent: string | null;
  /** The whole `Cookie` header. */
  readonly cookie: string | undefined;
}

/** One sign-in of a person, on one browser. */
export interface SignIn {
  readonly signInId: string;
  /** When it began. */
  readonly since: Date;
  /** Never shown. */
  readonly token: string;
  readonly userId: string;
  readonly name: string;
  readonly email: string;
}

/** A new sign-in, and its cookie. */
export interface NewSignIn {
  readonly userId: string;
  readonly setCookies: readonly string[];
}

export interface IdentityOptions extends Omit<AuthOptions, 'publicUrl' | 'log' | `on${string}`> {
  log: Pick<Log, 'debug' | 'warn' | 'error'>;
  clock: Pick<Clock, 'sleep'>;
  /** The console's URL; passkeys are valid for its host. First called by the first request. */
  publicUrl(): URL;
  /** Runs in every sign-in, by any method; a sign-in that can't be recorded fails. */
  onSignedIn(userId: string, visitor: Visitor): Promise<void>;
  /** Runs when the provider has said who someone is. False: they are refused. */
  onNamed(account: ProviderAccount): Promise<boolean>;
  /** Runs when an account of the provider was connected. */
  onConnected(userId: string, visitor: Visitor): Promise<void>;
}

/** What is known of a call of better-auth while it runs. */
interface Call {
  visitor: Visitor;
  /** The hash that a password matched. */
  verifiedHash?: string;
  /** Why `onNamed` failed. */
  failure?: unknown;
}

export interface Identity {
  /** The sign-in of a `Cookie` header, from the database; undefined if there is none. */
  find(cookie: string | undefined): Promise<SignIn | undefined>;
  /** The same, extended to `signInDays` from now; with the cookies to set, if any. */
  refresh(visitor: Visitor): Promise<{ signIn: SignIn | undefined; setCookies: readonly string[] }>;
  /** The value of our cookie in the header, valid or not. */
  cookieIn(cookie: string | undefined): string | undefined;
  /** Undefined if the email or password is wrong; an unknown email costs the same work. */
  signIn(email: string, password: string, visitor: Visitor): Promise<NewSignIn | undefined>;
  /** Signs in a person who has proved who they are in another way. */
  begin(userId: string, visitor: Visitor): Promise<NewSignIn & { signInId: string }>;
  /** Undefined if the current password is wrong. Every other sign-in of the person ends. */
  changePassword(current: string, next: string, visitor: Visitor): Promise<NewSignIn | undefined>;
  /** The provider's URL to redirect to, and the cookie that binds the callback to this browser. */
  startProvider(
    way: { kind: 'signIn' | 'signUp' | 'link'; returnTo: string },
    visitor: Visitor,
  ): Promise<{ url: string; setCookies: readonly string[] }>;
  /** Ends a sign-in with the provider, whose redirect has this query string. Throws 503 if it failed. */
  finishProvider(query: string, visitor: Visitor): Promise<{ location: string | null; setCookies: readonly string[] }>;
  /** For the header of every change; valid only with this sign-in. */
  csrfTokenOf(signIn: SignIn): string;
  isCsrfTokenOf(signIn: SignIn, given: string | undefined): boolean;
  /** The `Set-Cookie` headers that delete the cookie. */
  clearing(): string;
}

const PROVIDER_TIMEOUT_MS = 15_000;

export function createIdentity(options: IdentityOptions): Identity {
  const { publicUrl } = options;
  const calls = new AsyncLocalStorage<Call>();
  const csrfKey = createHmac('sha256', options.key).update('csrf').digest();
  let own: Promise<Auth> | undefined;
  let withProvider: Promise<Auth> | undefined;

  async function configured(oidc: AuthOptions['oidc']): Promise<Auth> {
    // Loaded on first use: it takes a third of the service's start time and memory, which a node without a console does not need.
    const { configureAuth } = await import('./better-auth.ts');
    return configureAuth({
      ...options,
      oidc,
      publicUrl: publicUrl(),
      onSignedIn: (userId) => options.onSignedIn(userId, calls.getStore()!.visitor),
      async onNamed(account) {
        try {
          return await options.onNamed(account);
        } catch (error) {
          // better-auth would call it a refusal by the provider.
          calls.getStore()!.failure = error;
          throw error;
        }
      },
      onConnected: (userId) => options.onConnected(userId, calls.getStore()!.visitor),
      onVerified(hash) {
        calls.getStore()!.verifiedHash = hash;
      },
    });
  }

  /** Created by the first request. */
  function auth(): Promise<Auth> {
    own ??= configured(undefined);
    return own;
  }

  /**
   * The same, with the provider, whose URLs and keys are fetched when it is created. It is separate, so that only sign-ins by the provider
   * wait for one that is unreachable. Created again if the provider could not be reached. Throws 503.
   */
  async function authWithProvider(): Promise<Auth> {
    withProvider ??= configured(options.oidc);
    const found = await withProvider;
    try {
      const { socialProviders } = await inTime(found.$context);
      if (socialProviders.some(({ id }) => id === PROVIDER_ID)) return found;
    } catch (error) {
      withProvider = undefined;
      throw error;
    }
    withProvider = undefined;
    throw unreachable();
  }

  /** better-auth waits for minutes for a provider that does not respond, and the request with it. Throws 503. */
  async function inTime<T>(work: Promise<T>): Promise<T> {
    const over = new AbortController();
    const late = options.clock.sleep(PROVIDER_TIMEOUT_MS, over.signal).then(() => {
      throw unreachable();
    });
    // What loses the race still ends some time.
    for (const one of [work, late]) one.catch(() => {});
    try {
      return await Promise.race([work, late]);
    } finally {
      over.abort(OVER);
    }
  }

  /** A failure of better-auth, usually of its database, is not the caller's fault: 503. */
  function unavailable(error: unknown): never {
    if (error instanceof ApiError) throw error;
    const { name, code } = error as { name?: string; code?: string | number };
    options.log.error({ name, code }, 'sign-in is not available');
    throw new ApiError('unavailable', 'Sign-in is not available. Try again soon.', { retryAfterSeconds: 1 });
  }

  /** The headers that better-auth gets: only those it needs, and none that the caller invented. */
  function headersOf(visitor: Visitor): Headers {
    const headers = new Headers({ origin: publicUrl().origin, [ADDRESS_HEADER]: visitor.ipAddress });
    if (visitor.cookie !== undefined) headers.set('cookie', visitor.cookie);
    if (visitor.userAgent !== null) headers.set('user-agent', visitor.userAgent);
    return headers;
  }

  async function find(cookie: string | undefined): Promise<SignIn | undefined> {
    if (cookieIn(cookie) === undefined) return undefined;
    const { api } = await auth();
    const found = await api
      .getSession({
        headers: new Headers({ cookie: cookie! }),
        query: { disableRefresh: true, disableCookieCache: true },
      })
      .catch(unavailable);
    return found ? signInOf(found) : undefined;
  }

  function cookieIn(cookie: string | undefined): string | undefined {
    return readCookie(cookie, cookieNameOf(publicUrl()));
  }

  function csrfTokenOf({ token }: SignIn): string {
    return createHmac('sha256', csrfKey).update(token).digest('base64url');
  }

  return {
    find,
    cookieIn,

    async refresh(visitor) {
      if (cookieIn(visitor.cookie) === undefined) return { signIn: undefined, setCookies: [] };
      const { api } = await auth();
      const { headers, response } = await api
        .getSession({ headers: headersOf(visitor), returnHeaders: true })
        .catch(unavailable);
      return { signIn: response ? signInOf(response) : undefined, setCookies: headers.getSetCookie() };
    },

    signIn: (email, password, visitor) =>
      calls.run({ visitor }, async () => {
        const { api, $context } = await auth();
        try {
          const { headers, response } = await api.signInEmail({
            body: { email, password },
            headers: headersOf(visitor),
            returnHeaders: true,
          });
          // A new password was set concurrently and ended the sign-ins that it saw. This one was not among them.
          const { internalAdapter } = await $context;
          const accounts = await internalAdapter.findAccounts(response.user.id);
          if (!accounts.some((one) => one.password && one.password === calls.getStore()?.verifiedHash)) {
            await internalAdapter.deleteSession(response.token);
            return undefined;
          }
          return { userId: response.user.id, setCookies: headers.getSetCookie() };
        } catch (error) {
          if (isRefusal(error)) return undefined;
          return unavailable(error);
        }
      }),

    begin: (userId, visitor) =>
      calls.run({ visitor }, async () => {
        const { api } = await auth();
        const { headers, response } = await api
          .beginSignIn({ headers: headersOf(visitor), query: { userId }, returnHeaders: true })
          .catch(unavailable);
        return { userId, signInId: response.signInId, setCookies: headers.getSetCookie() };
      }),

    changePassword: (currentPassword, newPassword, visitor) =>
      calls.run({ visitor }, async () => {
        const { api } = await auth();
        try {
          const { headers, response } = await api.changePassword({
            body: { currentPassword, newPassword, revokeOtherSessions: true },
            headers: headersOf(visitor),
            returnHeaders: true,
          });
          return { userId: response.user.id, setCookies: headers.getSetCookie() };
        } catch (error) {
          if (isRefusal(error)) return undefined;
          return unavailable(error);
        }
      }),

    async startProvider({ kind, returnTo }, visitor) {
      const { api } = await authWithProvider();
      const body = {
        provider: PROVIDER_ID,
        callbackURL: publicUrl().origin + returnTo,
        errorCallbackURL: errorUrlOf(publicUrl()),
        disableRedirect: true,
      };
      const headers = headersOf(visitor);
      const { headers: responseHeaders, response } =
        kind === 'link'
          ? await api.linkSocialAccount({ body, headers, returnHeaders: true })
          : await api.signInSocial({
              body: { ...body, requestSignUp: kind === 'signUp' },
              headers,
              returnHeaders: true,
            });
      return { url: response.url!, setCookies: responseHeaders.getSetCookie() };
    },

    finishProvider: (query, visitor) =>
      calls.run({ visitor }, async () => {
        const { handler } = await authWithProvider();
        const request = new Request(`${publicUrl().origin}${CALLBACK_PATH}?${query}`, { headers: headersOf(visitor) });
        const response = await inTime(handler(request)).catch(unavailable);
        const location = response.headers.get('location');
        const { failure } = calls.getStore()!;
        if (failure !== undefined) return unavailable(failure);
        // If its database failed, it redirects with this error.
        const isFailure = location?.endsWith('error=internal_server_error');
        if (isFailure || response.status >= 500) return unavailable({ name: 'Response', code: response.status });
        return { location, setCookies: response.headers.getSetCookie() };
      }),

    csrfTokenOf,
    isCsrfTokenOf(signIn, given) {
      const [expected, found] = [Buffer.from(csrfTokenOf(signIn)), Buffer.from(given ?? '')];
      return expected.length === found.length && timingSafeEqual(expected, found);
    },

    clearing: () => setCookie(publicUrl(), cookieNameOf(publicUrl()), '', 0),
  };
}

function signInOf({
  session,
  user,
}: {
  session: { id: string; token: string; createdAt: Date };
  user: { id: string; name: string; email: string };
}): SignIn {
  return {
    signInId: session.id,
    since: session.createdAt,
    token: session.token,
    userId: user.id,
    name: user.name,
    email: user.email,
  };
}

function unreachable(): ApiError {
  return new ApiError('unavailable', "The provider can't be reached. Try again soon.", { retryAfterSeconds: 5 });
}

/** A deliberate refusal by better-auth has a status; a failure of its database has 500. */
function isRefusal(error: unknown): boolean {
  const { statusCode } = error as { statusCode?: number };
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500;
}
