// Signing in without a password: with passkeys, and with an OpenID Connect provider.
import type { Route } from '@signalbox/contract';
import { type ConsoleBody, type ConsoleResult, consoleRoutes } from '@signalbox/contract/console';
import type { FastifyInstance } from 'fastify';
import { ApiError, invalidField } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import { CALLBACK_PATH, type NewSignIn, type SignIn, type Visitor } from '../../people/identity.ts';
import { readLink } from '../../people/links.ts';
import {
  addPasskey,
  listPasskeys,
  notePasskeyUse,
  promptForNewPasskey,
  promptForSignIn,
  removePasskey,
  verifyPasskey,
} from '../../people/passkeys.ts';
import { endSignIn } from '../../people/sign-ins.ts';
import type { Platform } from '../../platform.ts';
import { STRANGER_BODY_BYTES } from '../admission/admission.ts';
import { callerOf } from '../auth/auth.ts';
import { replaceSignIn, requireCsrfToken, requireOwnOrigin, signedOut, visitorOf } from '../auth/session-cookie.ts';
import { validatorOf } from '../body/validate.ts';
import { type ConsoleApiOptions, consoleRoutesOn, enterConsole, pathOf } from './routes.ts';

export function addOtherSignIns(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions): void {
  addPasskeys(app, platform, options);
  if (options.provider) addProvider(app, platform, options);
}

function addPasskeys(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions): void {
  const { identity, limits } = options;
  const { get, post } = consoleRoutesOn(app, platform, options);

  get('GET /auth/passkey/generate-register-options', async ({ signIn, reply }) => {
    requireFreshSignIn(platform.clock, signIn);
    const prompt = await promptForNewPasskey(platform, signIn);
    reply.header('set-cookie', prompt.setCookie);
    return prompt.options;
  });

  post('POST /auth/passkey/verify-registration', 'asPerson', async ({ signIn, visitor, body }) => {
    requireFreshSignIn(platform.clock, signIn!);
    await addPasskey(platform, signIn!, visitor, body);
  });

  get('GET /auth/passkey/list-user-passkeys', async ({ signIn }) => {
    const passkeys = await listPasskeys(platform.db, signIn.userId);
    return passkeys.map(({ createdAt, ...passkey }) => ({ ...passkey, createdAt: createdAt?.toISOString() ?? null }));
  });

  post('POST /auth/passkey/delete-passkey', 'asPerson', ({ signIn, visitor, body }) =>
    removePasskey(platform, signIn!, visitor, body.id),
  );

  const start = 'GET /auth/passkey/generate-authenticate-options';
  app.get(pathOf(start), {
    onRequest: (request, reply) => enterConsole(options, request, reply),
    handler: async (request, reply): Promise<ConsoleResult<typeof start>> => {
      limits.startSignIn(callerOf(request).ipAddress);
      const prompt = await promptForSignIn(platform);
      reply.header('set-cookie', prompt.setCookie);
      return prompt.options;
    },
  });

  post('POST /auth/passkey/verify-authentication', 'anybody', async ({ visitor, body, reply }) => {
    const begun = await limits.signIn(visitor.ipAddress, undefined, () => signInByPasskey(visitor, body.response));
    if (!begun)
      throw new ApiError(
        'sign_in_failed',
        'The passkey is unknown, did not verify a PIN, fingerprint or face, or took too long. Try again.',
      );
    await replaceSignIn(platform.db, identity, visitor, begun.setCookies);
    reply.header('set-cookie', begun.setCookies);
    return { signedIn: true as const };
  });

  async function signInByPasskey(visitor: Visitor, response: unknown): Promise<NewSignIn | undefined> {
    const used = await verifyPasskey(platform, visitor, response);
    if (!used) return undefined;
    const begun = await identity.begin(used.userId, visitor);
    if (await notePasskeyUse(platform.db, used)) return begun;
    await endSignIn(platform.db, used.userId, begun.signInId);
    return undefined;
  }
}

function addProvider(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions): void {
  const { identity, limits, admission } = options;

  // Responds with the provider's URL. With the token of an invitation a new person may sign up; without one, only known people sign in.
  const validateWish = validatorOf(consoleRoutes['POST /oidc'] as unknown as Route);
  app.post(pathOf('POST /oidc'), {
    bodyLimit: STRANGER_BODY_BYTES,
    onRequest: async (request, reply) => {
      await enterConsole(options, request, reply);
      requireOwnOrigin(request.headers, platform.publicUrl());
    },
    handler: async (request, reply): Promise<ConsoleResult<'POST /oidc'>> => {
      const visitor = visitorOf(callerOf(request));
      limits.startSignIn(visitor.ipAddress);
      const wish = validateWish({ params: {}, query: {}, body: request.body ?? {} }) as ConsoleBody<'POST /oidc'>;
      const { token, returnTo = '/console', link } = wish;
      if (link) {
        const signIn = await identity.find(visitor.cookie);
        if (!signIn) throw signedOut();
        requireCsrfToken(identity, signIn, request.headers);
        requireFreshSignIn(platform.clock, signIn);
      }
      // A password reset is for people who have a password, not for new ones.
      if (token !== undefined && (await readLink(platform, token)).type === 'passwordReset') {
        throw invalidField('token', 'must be the token of an invitation');
      }
      const kind = link ? 'link' : token !== undefined ? 'signUp' : 'signIn';
      const { url, setCookies } = await identity.startProvider({ kind, returnTo }, visitor);
      reply.header('set-cookie', setCookies);
      return { url };
    },
  });

  // Only GET, without HEAD: the call consumes the one-time state of the sign-in.
  app.get(CALLBACK_PATH, { exposeHeadRoute: false }, async (request, reply) => {
    admission.of(request, reply).identifyCaller(false);
    const query = request.raw.url?.split('?', 2)[1] ?? '';
    const visitor = visitorOf(callerOf(request));
    const { location, setCookies } = await identity.finishProvider(query, visitor);
    if (!location)
      throw new ApiError('invalid_request', 'The redirect from the provider was incomplete. Sign in again.');
    await replaceSignIn(platform.db, identity, visitor, setCookies);
    if (setCookies.length > 0) reply.header('set-cookie', setCookies);
    return reply.redirect(location);
  });
}

// With an old sign-in, an attacker must not be able to add another sign-in method.
const FRESH_MS = 24 * 3600_000;

function requireFreshSignIn(clock: Clock, { since }: SignIn): void {
  if (clock.now().getTime() - since.getTime() <= FRESH_MS) return;
  throw new ApiError('sign_in_again', 'This needs a sign-in within the last 24 hours. Sign in again.');
}
