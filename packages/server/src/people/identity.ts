// Who is signed in. better-auth keeps people, password hashes, sign-ins, passkeys and accounts of a provider, in the schema
// `auth`; this is the one file that knows it. What makes a person one of an organization is ours (members.ts).
//
// What is switched off, and why:
//   open sign-up            a person comes by a link alone (links.ts), also by way of a provider
//   linking by e-mail       nobody proves an e-mail here: who was invited as somebody else's would get what a provider later
//                           says is theirs. A provider's account is linked by a person who is signed in, or comes with a link
//   the cookie cache        every request asks the database, so that a sign-out holds at once on every node
//   its own HTTP interface  only what http/console-api.ts lets through
//
// The cookie holds the sign-in's token and a signature of it under a key derived from the master key: who reads the database
// alone can't make one. Every sign-in has a token of its own, so none can be planted before.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { passkey } from '@better-auth/passkey';
import { betterAuth } from 'better-auth';
import { createAuthEndpoint } from 'better-auth/api';
import { setSessionCookie } from 'better-auth/cookies';
import { genericOAuth } from 'better-auth/plugins/generic-oauth';
import type { Pool } from 'pg';
import type { OidcProvider } from '../config.ts';
import { newUuid } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';

/** Who is asking, before anything is known of them. */
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
  /** Never shown. */
  readonly token: string;
  readonly userId: string;
  readonly name: string;
  readonly email: string;
}

/** A sign-in that has just begun, and the cookie that carries it. */
export interface Begun {
  readonly userId: string;
  readonly setCookies: readonly string[];
}

export interface IdentityOptions {
  pool: Pool;
  log: Pick<Log, 'debug' | 'warn' | 'error'>;
  /** Where people open the console; passkeys hold for its host. Asked for the first time by the first request. */
  publicUrl: () => URL;
  /** Derived from the master key. */
  key: Buffer;
  oidc: OidcProvider | undefined;
  /** A sign-in that is not used for so long has ended. */
  signInDays: number;
  /** Runs in every sign-in, whichever way it was made; a sign-in that can't be recorded fails. */
  onSignedIn(userId: string, visitor: Visitor): Promise<void>;
}

export interface Identity {
  /** The sign-in of a `Cookie` header, asked of the database; undefined where there is none. */
  find(cookie: string | undefined): Promise<SignIn | undefined>;
  /** The same, and it lasts for `signInDays` from now: the cookies to set, if any. */
  refresh(visitor: Visitor): Promise<{ signIn: SignIn | undefined; setCookies: readonly string[] }>;
  /** The value of our cookie in the header, good or not. */
  cookieIn(cookie: string | undefined): string | undefined;
  /** Undefined where e-mail and password do not belong together; an unknown e-mail costs the same work. */
  signIn(email: string, password: string, visitor: Visitor): Promise<Begun | undefined>;
  /** Begins a sign-in of a person who has proved otherwise who they are. */
  begin(userId: string, visitor: Visitor): Promise<Begun>;
  /** Undefined where the present password is another one. Every other sign-in of the person ends. */
  changePassword(current: string, next: string, visitor: Visitor): Promise<Begun | undefined>;
  /** The address of the provider to go to, and the cookie that binds the way back to this browser. */
  startProvider(
    way: { kind: 'signIn' | 'signUp' | 'link'; returnTo: string },
    visitor: Visitor,
  ): Promise<{ url: string; setCookies: readonly string[] }>;
  /** better-auth's own answer, to one of its paths below `/console/api/auth`. */
  handle(request: { method: string; path: string; body: unknown }, visitor: Visitor): Promise<Response>;
  /** For the header of every change; worth something beside this sign-in alone. */
  csrfTokenOf(signIn: SignIn): string;
  isCsrfTokenOf(signIn: SignIn, given: string | undefined): boolean;
  /** What takes the cookie out of the browser. */
  clearing(): string;
}

export const AUTH_PATH = '/console/api/auth';
export const PROVIDER_ID = 'oidc';
const DAY_SECONDS = 24 * 3600;
// better-auth reads the address of a request from a header; nobody but us can set this one, as requests to it are made here.
const ADDRESS_HEADER = 'x-signalbox-address';

export function createIdentity(options: IdentityOptions): Identity {
  const { publicUrl } = options;
  const visitors = new AsyncLocalStorage<Visitor>();
  const csrfKey = createHmac('sha256', options.key).update('csrf').digest();
  let made: { auth: Auth; at: Promise<boolean> } | undefined;

  /** Made with the first request; made anew where the provider could not be reached then. */
  async function auth(): Promise<Auth> {
    if (made && (await made.at)) return made.auth;
    const instance = configure(options, visitors);
    const hasProvider = instance.$context.then(
      (context) => !options.oidc || context.socialProviders.some(({ id }) => id === PROVIDER_ID),
    );
    made = { auth: instance, at: hasProvider };
    await hasProvider;
    return instance;
  }

  /** For a call of better-auth's: what it may know of the request, and nothing that the caller made up. */
  function headersOf(visitor: Visitor): Headers {
    const headers = new Headers({ origin: publicUrl().origin, [ADDRESS_HEADER]: visitor.ipAddress });
    if (visitor.cookie !== undefined) headers.set('cookie', visitor.cookie);
    if (visitor.userAgent !== null) headers.set('user-agent', visitor.userAgent);
    return headers;
  }

  async function find(cookie: string | undefined): Promise<SignIn | undefined> {
    if (cookieIn(cookie) === undefined) return undefined;
    const { api } = await auth();
    const found = await api.getSession({
      headers: new Headers({ cookie: cookie! }),
      query: { disableRefresh: true, disableCookieCache: true },
    });
    return found ? signInOf(found) : undefined;
  }

  function cookieIn(cookie: string | undefined): string | undefined {
    const name = cookieNameOf(publicUrl());
    const own = cookie?.split(';').find((part) => part.trim().startsWith(`${name}=`));
    return own?.trim().slice(name.length + 1);
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
      const { headers, response } = await api.getSession({ headers: headersOf(visitor), returnHeaders: true });
      return { signIn: response ? signInOf(response) : undefined, setCookies: headers.getSetCookie() };
    },

    signIn: (email, password, visitor) =>
      visitors.run(visitor, async () => {
        const { api } = await auth();
        try {
          const { headers, response } = await api.signInEmail({
            body: { email, password },
            headers: headersOf(visitor),
            returnHeaders: true,
          });
          return { userId: response.user.id, setCookies: headers.getSetCookie() };
        } catch (error) {
          if (isRefusal(error)) return undefined;
          throw error;
        }
      }),

    begin: (userId, visitor) =>
      visitors.run(visitor, async () => {
        const { api } = await auth();
        const { headers } = await api.beginSignIn({
          headers: headersOf(visitor),
          query: { userId },
          returnHeaders: true,
        });
        return { userId, setCookies: headers.getSetCookie() };
      }),

    changePassword: (currentPassword, newPassword, visitor) =>
      visitors.run(visitor, async () => {
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
          throw error;
        }
      }),

    async startProvider({ kind, returnTo }, visitor) {
      const { api } = await auth();
      const body = {
        provider: PROVIDER_ID,
        callbackURL: publicUrl().origin + returnTo,
        errorCallbackURL: errorUrlOf(publicUrl()),
        disableRedirect: true,
      };
      const headers = headersOf(visitor);
      const { headers: answered, response } =
        kind === 'link'
          ? await api.linkSocialAccount({ body, headers, returnHeaders: true })
          : await api.signInSocial({
              body: { ...body, requestSignUp: kind === 'signUp' },
              headers,
              returnHeaders: true,
            });
      return { url: response.url!, setCookies: answered.getSetCookie() };
    },

    handle: ({ method, path, body }, visitor) =>
      visitors.run(visitor, async () => {
        const headers = headersOf(visitor);
        if (body !== undefined) headers.set('content-type', 'application/json');
        const request = new Request(publicUrl().origin + path, {
          method,
          headers,
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        return (await auth()).handler(request);
      }),

    csrfTokenOf,
    isCsrfTokenOf(signIn, given) {
      const [expected, found] = [Buffer.from(csrfTokenOf(signIn)), Buffer.from(given ?? '')];
      return expected.length === found.length && timingSafeEqual(expected, found);
    },

    clearing: () =>
      `${cookieNameOf(publicUrl())}=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax${isHttps(publicUrl()) ? '; Secure' : ''}`,
  };
}

type Auth = ReturnType<typeof configure>;

function configure(
  { pool, log, publicUrl: publicUrlOf, key, oidc, signInDays, onSignedIn }: IdentityOptions,
  visitors: AsyncLocalStorage<Visitor>,
) {
  const publicUrl = publicUrlOf();
  const times = { createdAt: 'created_at', updatedAt: 'updated_at' };
  return betterAuth({
    appName: 'Signalbox',
    baseURL: publicUrl.origin,
    basePath: AUTH_PATH,
    secret: key.toString('base64url'),
    trustedOrigins: [publicUrl.origin],
    database: pool,
    telemetry: { enabled: false },
    // Limited where the address of the caller is known (http/limits.ts).
    rateLimit: { enabled: false },
    // Its messages may say whom it was about; what can be mended stands in the message alone.
    logger: {
      level: 'warn',
      disableColors: true,
      log: (level, message) =>
        level === 'error' ? log.warn({ message }, 'sign-in') : log.debug({ message }, 'sign-in'),
    },
    onAPIError: { errorURL: errorUrlOf(publicUrl) },
    user: { modelName: 'users', fields: { emailVerified: 'email_verified', ...times } },
    session: {
      modelName: 'sign_ins',
      fields: {
        userId: 'user_id',
        expiresAt: 'expires_at',
        ipAddress: 'ip_address',
        userAgent: 'user_agent',
        ...times,
      },
      expiresIn: signInDays * DAY_SECONDS,
      updateAge: DAY_SECONDS / 24,
      cookieCache: { enabled: false },
    },
    account: {
      modelName: 'accounts',
      fields: {
        userId: 'user_id',
        providerId: 'provider_id',
        accountId: 'account_id',
        accessToken: 'access_token',
        refreshToken: 'refresh_token',
        idToken: 'id_token',
        accessTokenExpiresAt: 'access_token_expires_at',
        refreshTokenExpiresAt: 'refresh_token_expires_at',
        ...times,
      },
      updateAccountOnSignIn: false,
      accountLinking: {
        enabled: true,
        disableImplicitLinking: true,
        allowDifferentEmails: true,
        trustedProviders: [PROVIDER_ID],
      },
    },
    verification: { modelName: 'verifications', fields: { expiresAt: 'expires_at', ...times } },
    emailAndPassword: { enabled: true, disableSignUp: true, minPasswordLength: 1, maxPasswordLength: 128 },
    databaseHooks: {
      session: {
        create: {
          after: async ({ userId }) => onSignedIn(userId, visitors.getStore()!),
        },
      },
      account: {
        create: {
          // Who signs in by a provider is all that we ask of it; its tokens would only be there to be stolen.
          before: async (account) => ({
            data: { ...account, accessToken: undefined, refreshToken: undefined, idToken: undefined },
          }),
        },
      },
    },
    advanced: {
      cookiePrefix: prefixOf(publicUrl),
      useSecureCookies: false,
      defaultCookieAttributes: { secure: isHttps(publicUrl), httpOnly: true, sameSite: 'lax', path: '/' },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER], ipv6Subnet: 128 },
      database: { generateId: () => newUuid(), validateSchema: false },
    },
    plugins: [
      passkey({
        rpID: publicUrl.hostname,
        rpName: 'Signalbox',
        origin: publicUrl.origin,
        advanced: { webAuthnChallengeCookie: 'passkey' },
        schema: {
          passkey: {
            modelName: 'passkeys',
            fields: {
              userId: 'user_id',
              publicKey: 'public_key',
              credentialID: 'credential_id',
              deviceType: 'device_type',
              backedUp: 'backed_up',
              createdAt: 'created_at',
            },
          },
        },
      }),
      genericOAuth({
        config: oidc
          ? [
              {
                providerId: PROVIDER_ID,
                name: oidc.name,
                discoveryUrl: `${oidc.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
                clientId: oidc.clientId,
                clientSecret: oidc.clientSecret,
                scopes: ['openid', 'email', 'profile'],
                pkce: true,
                requireIdTokenVerification: true,
                disableImplicitSignUp: true,
              },
            ]
          : [],
      }),
      {
        id: 'signalbox',
        endpoints: {
          // Without a path it is no part of the HTTP interface.
          beginSignIn: createAuthEndpoint({ method: 'GET', requireHeaders: true }, async (ctx) => {
            const { internalAdapter } = ctx.context;
            const { userId } = ctx.query as { userId: string };
            const [session, user] = [
              await internalAdapter.createSession(userId),
              await internalAdapter.findUserById(userId),
            ];
            if (!session || !user) throw new Error('The person is not there any more');
            await setSessionCookie(ctx, { session, user });
            return { userId };
          }),
        },
      },
    ],
  });
}

function isHttps(publicUrl: URL): boolean {
  return publicUrl.protocol === 'https:';
}

/** `__Host-`: no other host of the domain can set such a cookie. A browser takes it over https alone. */
function prefixOf(publicUrl: URL): string {
  return isHttps(publicUrl) ? '__Host-signalbox' : 'signalbox';
}

function cookieNameOf(publicUrl: URL): string {
  return `${prefixOf(publicUrl)}.session_token`;
}

/** Where the console says that signing in by a provider did not work; `?error=` is added. */
function errorUrlOf(publicUrl: URL): string {
  return `${publicUrl.origin}/console/sign-in`;
}

function signInOf({
  session,
  user,
}: {
  session: { id: string; token: string };
  user: { id: string; name: string; email: string };
}): SignIn {
  return { signInId: session.id, token: session.token, userId: user.id, name: user.name, email: user.email };
}

/** What better-auth refuses on purpose has a status; that it could not ask the database has 500. */
function isRefusal(error: unknown): boolean {
  const { statusCode } = error as { statusCode?: number };
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500;
}
