// How better-auth is set up: people, password hashes, sign-ins, passkeys and accounts of a provider. What is made
// of it stands in identity.ts.
//
// What is switched off, and why:
//   open sign-up            a person comes by a link alone (links.ts), also by way of a provider
//   linking by e-mail       nobody proves an e-mail here: who was invited as somebody else's would get what a provider later
//                           says is theirs. A provider's account is linked by a person who is signed in, or comes with a link
//   the cookie cache        every request asks the database, so that a sign-out holds at once on every node
//   its own HTTP interface  only what http/console/sign-in.ts lets through
import { passkey } from '@better-auth/passkey';
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

/** What better-auth works with. */
export interface AuthOptions {
  pool: IdentityPool;
  log: Pick<Log, 'debug' | 'warn'>;
  publicUrl: URL;
  /** Derived from the master key. */
  key: Buffer;
  /** A sign-in that is not used for so long has ended. */
  signInDays: number;
  oidc: OidcProvider | undefined;
  /** Runs in every sign-in, whichever way it was made; a sign-in that can't be recorded fails. */
  onSignedIn(userId: string): Promise<void>;
  /** Hears the hash that a password was right for. */
  onVerified(hash: string): void;
  /** Runs when an account of the provider became a way in; the request fails where it can't be recorded. */
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
    // Limited where the address of the caller is known (http/request/limits.ts).
    rateLimit: { enabled: false },
    // Its messages may say whom it was about; what can be mended stands in the message alone.
    logger: {
      level: 'warn',
      disableColors: true,
      log: (level, message) =>
        level === 'error' ? log.warn({ message }, 'sign-in') : log.debug({ message }, 'sign-in'),
    },
    // What it did not expect comes to us: it would print the whole of it.
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
          // What a provider says of a new person is bounded as what they would say themselves (http/console/api.ts).
          before: async ({ name, email, ...user }) =>
            isEmail(email)
              ? { data: { ...user, email, name: (name.trim() || email).slice(0, MAX_NAME).toWellFormed() } }
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
          // Who signs in by a provider is all that we ask of it; its tokens would only be there to be stolen.
          before: async (account) => ({
            data: { ...account, accessToken: undefined, refreshToken: undefined, idToken: undefined },
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
      passkey({
        rpID: publicUrl.hostname,
        rpName: 'Signalbox',
        origin: publicUrl.origin,
        advanced: { webAuthnChallengeCookie: 'passkey' },
        // As signing in by one needs it (http/console/sign-in.ts).
        authenticatorSelection: { userVerification: 'required' },
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
                // An e-mail that none can be is none, before anything is looked for by it.
                mapProfileToUser: ({ email }) => ({ email: isEmail(email) ? email : '' }),
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

function isEmail(given: unknown): given is string {
  return typeof given === 'string' && given.length <= MAX_EMAIL && /^[^\s@\0]+@[^\s@\0]+$/.test(given);
}
