// Signing in without a password: with passkeys, and with an OpenID Connect provider. Only these paths of better-auth's own API are
// passed through; its refusals become Problems like any other.
import type { Route } from '@signalbox/contract';
import { type ConsoleBody, type ConsoleCall, type ConsoleResult, consoleRoutes } from '@signalbox/contract/console';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { ApiError, invalidField } from '../../lib/api-error.ts';
import { AUTH_PATH, PROVIDER_ID, type Visitor } from '../../people/identity.ts';
import { readLink } from '../../people/links.ts';
import { recordOfPerson } from '../../people/records.ts';
import { requireOtherWayThanPasskey } from '../../people/sign-ins.ts';
import type { Platform } from '../../platform.ts';
import { STRANGER_BODY_BYTES } from '../request/admission.ts';
import { callerOf } from '../request/auth.ts';
import { replaceSignIn, requireCsrfToken, requireOwnOrigin, signedOut, visitorOf } from '../request/session-cookie.ts';
import { validatorOf } from '../request/validate.ts';
import { type ConsoleApiOptions, enterConsole, pathOf } from './api.ts';

interface PasskeyCall {
  call: ConsoleCall;
  /** Only for signed-in people. */
  asPerson?: true;
  isSignIn?: true;
  /** Options for the browser's passkey prompt. */
  isOptions?: true;
  records?: 'user.passkey_added' | 'user.passkey_removed';
}

const passkeyCalls: readonly PasskeyCall[] = [
  { call: 'GET /auth/passkey/generate-register-options', asPerson: true },
  { call: 'POST /auth/passkey/verify-registration', asPerson: true, records: 'user.passkey_added' },
  { call: 'GET /auth/passkey/list-user-passkeys', asPerson: true },
  { call: 'POST /auth/passkey/delete-passkey', asPerson: true, records: 'user.passkey_removed' },
  { call: 'GET /auth/passkey/generate-authenticate-options', isOptions: true },
  { call: 'POST /auth/passkey/verify-authentication', isSignIn: true },
];

// As in better-auth for passkeys: with an old sign-in, an attacker must not be able to add another sign-in method.
const FRESH_MS = 24 * 3600_000;

export function addOtherSignIns(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions): void {
  const { identity, limits, admission, provider } = options;

  for (const { call, asPerson, isSignIn, isOptions, records } of passkeyCalls) {
    const method = call.startsWith('GET ') ? 'GET' : 'POST';
    const path = pathOf(call);
    const route = consoleRoutes[call] as unknown as Route;
    const validate = validatorOf(route);
    app.route({
      method,
      url: path,
      bodyLimit: STRANGER_BODY_BYTES,
      onRequest: async (request, reply) => {
        await enterConsole(options, request, reply);
        if (method === 'POST') requireOwnOrigin(request.headers, platform.publicUrl());
      },
      handler: async (request, reply) => {
        const visitor = visitorOf(callerOf(request));
        if (!asPerson && !isSignIn) limits.startSignIn(visitor.ipAddress);
        const signIn = asPerson ? await identity.find(visitor.cookie) : undefined;
        if (asPerson && !signIn) throw signedOut();
        if (signIn && method === 'POST') requireCsrfToken(identity, signIn, request.headers);
        const body = route.body && (validate({ params: {}, query: {}, body: request.body }) as Record<string, unknown>);
        if (signIn && records === 'user.passkey_removed') {
          await requireOtherWayThanPasskey(platform.db, signIn.userId);
        }
        const ask = () => identity.handle({ method, path, body }, visitor);
        const response = isSignIn ? await signInBy(visitor, body, ask) : await ask();
        const result = await resultOf(response);
        if (isSignIn) await replaceSignIn(platform.db, identity, visitor, response.headers.getSetCookie());
        if (records && signIn) await recordOfPerson(platform, signIn.userId, visitor, { type: records });
        passCookies(response, reply);
        // better-auth's response contains its session token, which the page must not see: only the cookie has it.
        if (isSignIn) return { signedIn: true } satisfies ConsoleResult<'POST /auth/passkey/verify-authentication'>;
        return isOptions ? { ...(result as object), userVerification: 'required' } : result;
      },
    });
  }

  async function signInBy(visitor: Visitor, body: unknown, ask: () => Promise<Response>): Promise<Response> {
    const response = await limits.signIn(visitor.ipAddress, undefined, async () => {
      if (!isVerified(body)) return undefined;
      const found = await ask();
      return found.ok ? found : undefined;
    });
    if (!response)
      throw new ApiError(
        'sign_in_failed',
        'The passkey is unknown, did not verify a PIN, fingerprint or face, or took too long. Try again.',
      );
    return response;
  }

  if (!provider) return;

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
        if (platform.clock.now().getTime() - signIn.since.getTime() > FRESH_MS) throw notFresh();
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
  app.get(`${AUTH_PATH}/callback/${PROVIDER_ID}`, { exposeHeadRoute: false }, async (request, reply) => {
    admission.of(request, reply).identifyCaller(false);
    const query = request.raw.url?.split('?', 2)[1] ?? '';
    const path = `${AUTH_PATH}/callback/${PROVIDER_ID}?${query}`;
    const visitor = visitorOf(callerOf(request));
    const response = await identity.handle({ method: 'GET', path, body: undefined }, visitor);
    const location = response.headers.get('location');
    if (!location)
      throw new ApiError('invalid_request', 'The redirect from the provider was incomplete. Sign in again.');
    await replaceSignIn(platform.db, identity, visitor, response.headers.getSetCookie());
    passCookies(response, reply);
    return reply.redirect(location);
  });
}

const RP_ID_HASH_BYTES = 32;
const USER_VERIFIED = 0x04;

/**
 * Whether the authenticator reports that it asked for a PIN, fingerprint or face. A passkey alone opens the account, and someone who finds
 * a security key must not get in. better-auth checks the signature over these bytes, but not the flag.
 */
function isVerified(body: unknown): boolean {
  const { response } = (body ?? {}) as { response?: { response?: { authenticatorData?: unknown } } };
  const data = response?.response?.authenticatorData;
  const flags = typeof data === 'string' ? Buffer.from(data, 'base64url')[RP_ID_HASH_BYTES] : undefined;
  return ((flags ?? 0) & USER_VERIFIED) !== 0;
}

function notFresh(): ApiError {
  return new ApiError('sign_in_again', 'This needs a sign-in within the last 24 hours. Sign in again.');
}

function passCookies(response: Response, reply: FastifyReply): void {
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) reply.header('set-cookie', cookies);
}

async function resultOf(response: Response): Promise<unknown> {
  const result = (await response.json().catch(() => ({}))) as { message?: string };
  if (response.ok) return result;
  const detail = result.message ?? 'The passkey request failed. Try again.';
  switch (response.status) {
    case 401:
      throw new ApiError('not_found', 'You have no such passkey.');
    case 403:
      throw notFresh();
    case 404:
      throw new ApiError('not_found', detail);
    case 400:
      throw new ApiError('invalid_request', `${detail}.`);
    default:
      throw new ApiError('unavailable', 'Passkeys are not available. Try again in a moment.', { retryAfterSeconds: 1 });
  }
}
