// The configuration of better-auth: people, password hashes, sign-ins and accounts of a provider. identity.ts uses it.
//
// What is switched off, and why:
//   open sign-up            people join only by a link (links.ts), also with a provider
//   linking by email        emails are not verified here. If someone was invited with another person's email, that person's account of
//                           a provider would be linked to it. Accounts are linked only by a signed-in person, or with a link
//   the cookie cache        every request reads the database, so that a sign-out takes effect at once on every node
//   its own HTTP API        only the redirect from a provider, which http/console/sign-in.ts passes on
import { betterAuth } from 'better-auth';
import { createAuthEndpoint } from 'better-auth/api';
import { setSessionCookie } from 'better-auth/cookies';
import { genericOAuth } from 'better-auth/plugins/generic-oauth';
import type { OidcProvider } from '../config/config.ts';
import type { IdentityPool } from '../db/identity-pool.ts';
import { newUuid } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { ADDRESS_HEADER, AUTH_PATH, cookiePrefixOf, errorUrlOf, isHttps, PROVIDER_ID } from './auth-names.ts';
import { hashPassword, verifyPassword } from './hashing.ts';
import { accountOf, claimsOf, type ProviderAccount } from './provider-account.ts';

/** What better-auth is configured with. */
export interface AuthOptions {
  pool: IdentityPool;
  log: Pick<Log, 'debug' | 'warn'>;
  publicUrl: URL;
  /** Derived from the master key. */
  key: Buffer;
  /** A sign-in that is not used for this long expires. */
  signInDays: number;
  oidc: OidcProvider | undefined;
  /** Runs in every sign-in, by any method; a sign-in that can't be recorded fails. */
  onSignedIn(userId: string): Promise<void>;
  /** Called with the hash that a password matched. */
  onVerified(hash: string): void;
  /** Runs when the provider has said who someone is. False: they are refused. */
  onNamed(account: ProviderAccount): Promise<boolean>;
  /** Runs when an account of the provider was connected; if it can't be recorded, the request fails. */
  onConnected(userId: string): Promise<void>;
}

export type Auth = ReturnType<typeof configureAuth>;

const DAY_SECONDS = 24 * 3600;
const MAX_NAME = 200;
const MAX_EMAIL = 254;

export function configureAuth({ pool, log, publicUrl, key, oidc, signInDays, ...heard }: AuthOptions) {
  const times = { createdAt: 'created_at', updatedAt: 'updated_at' };
  return betterAuth({
    appName: 'Signalbox',
    baseURL: publicUrl.origin,
    basePath: AUTH_PATH,
    secret: key.toString('base64url'),
    trustedOrigins: [publicUrl.origin],
    database: pool,
    telemetry: { enabled: false },
    // Off: http/admission/limits.ts limits sign-ins, because it knows the caller's address.
    rateLimit: { enabled: false },
    // Its arguments may name a person; the message alone is enough to fix the cause.
    logger: {
      level: 'warn',
      disableColors: true,
      log: (level, message) =>
        level === 'error' ? log.warn({ message }, 'sign-in') : log.debug({ message }, 'sign-in'),
    },
    // Unexpected errors are thrown to us: it would print them in full.
    onAPIError: { errorURL: errorUrlOf(publicUrl), throw: true },
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
      additionalFields: { issuer: { type: 'string', required: false, input: false, returned: false } },
      updateAccountOnSignIn: false,
      accountLinking: {
        enabled: true,
        disableImplicitLinking: true,
        allowDifferentEmails: true,
        trustedProviders: [PROVIDER_ID],
      },
    },
    verification: { modelName: 'verifications', fields: { expiresAt: 'expires_at', ...times } },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: 1,
      maxPasswordLength: 128,
      password: {
        hash: hashPassword,
        async verify(given) {
          const isRight = await verifyPassword(given);
          if (isRight) heard.onVerified(given.hash);
          return isRight;
        },
      },
    },
    databaseHooks: {
      user: {
        create: {
          // Fields from a provider have the same limits as those that a person enters (http/console/api.ts).
          before: async ({ name, email, ...user }) =>
            isEmail(email)
              ? {
                  data: { ...user, image: null, email, name: (name.trim() || email).slice(0, MAX_NAME).toWellFormed() },
                }
              : false,
        },
      },
      session: {
        create: {
          after: async ({ userId }) => heard.onSignedIn(userId),
        },
      },
      account: {
        create: {
          // Only the identity is needed from the provider; stored tokens could only be stolen.
          before: async (account) => ({
            data: {
              ...account,
              accessToken: undefined,
              refreshToken: undefined,
              idToken: undefined,
              issuer: account.idToken && claimsOf(account.idToken).iss,
            },
          }),
          after: async ({ userId }) => heard.onConnected(userId),
        },
      },
    },
    advanced: {
      cookiePrefix: cookiePrefixOf(publicUrl),
      useSecureCookies: false,
      defaultCookieAttributes: { secure: isHttps(publicUrl), httpOnly: true, sameSite: 'lax', path: '/' },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER], ipv6Subnet: 128 },
      database: { generateId: () => newUuid(), validateSchema: false },
    },
    plugins: [
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
                accountSubject: async ({ tokens, profile }) => {
                  const account = accountOf(tokens.idToken, profile, oidc.clientId);
                  if (!(await heard.onNamed(account))) throw new Error('The account belongs to another issuer');
                  return account.subject;
                },
                // An invalid email is refused before it is looked up.
                mapProfileToUser: ({ email }) => ({ email: isEmail(email) ? email : '' }),
              },
            ]
          : [],
      }),
      {
        id: 'signalbox',
        endpoints: {
          // Without a path it is not part of the HTTP API.
          beginSignIn: createAuthEndpoint({ method: 'GET', requireHeaders: true }, async (ctx) => {
            const { internalAdapter } = ctx.context;
            const { userId } = ctx.query as { userId: string };
            const [session, user] = [
              await internalAdapter.createSession(userId),
              await internalAdapter.findUserById(userId),
            ];
            if (!session || !user) throw new Error('The person is not there any more');
            await setSessionCookie(ctx, { session, user });
            return { signInId: session.id };
          }),
        },
      },
    ],
  });
}

function isEmail(given: unknown): given is string {
  return typeof given === 'string' && given.length <= MAX_EMAIL && /^[^\s@\0]+@[^\s@\0]+$/.test(given);
}
