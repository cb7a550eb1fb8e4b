// Signing in otherwise than by a password: passkeys, and an OpenID Connect provider. Of better-auth's own interface these paths
// are let through and no other; what it refuses becomes a problem like any other.
import type { Route } from '@signalbox/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { ApiError, invalidField } from '../../lib/api-error.ts';
import { AUTH_PATH, PROVIDER_ID, type Visitor } from '../../people/identity.ts';
import { lookLink } from '../../people/links.ts';
import { recordOfPerson } from '../../people/records.ts';
import { requireOtherWayThanPasskey } from '../../people/sign-ins.ts';
import type { Platform } from '../../platform.ts';
import { STRANGER_BODY_BYTES } from '../request/places.ts';
import { replaceSignIn, requireCsrfToken, requireOwnOrigin, signedOut, visitorOf } from '../request/session-cookie.ts';
import { validatorOf } from '../request/validate.ts';
import { type ConsoleApiOptions, enterConsole, strict } from './api.ts';

interface PasskeyCall {
  method: 'GET' | 'POST';
  path: string;
  body?: TSchema;
  /** For who is signed in alone. */
  asPerson?: true;
  isSignIn?: true;
  /** Of signing in, for the browser. */
  isOptions?: true;
  records?: 'user.passkey_added' | 'user.passkey_removed';
}

/** What a browser makes; better-auth looks into it. */
const credential = Type.Object({});

const passkeyCalls: readonly PasskeyCall[] = [
  { method: 'GET', path: '/passkey/generate-register-options', asPerson: true },
  {
    method: 'POST',
    path: '/passkey/verify-registration',
    body: strict({ response: credential, name: Type.Optional(Type.String({ maxLength: 200 })) }),
    asPerson: true,
    records: 'user.passkey_added',
  },
  { method: 'GET', path: '/passkey/list-user-passkeys', asPerson: true },
  {
    method: 'POST',
    path: '/passkey/delete-passkey',
    body: strict({ id: Type.String({ format: 'uuid' }) }),
    asPerson: true,
    records: 'user.passkey_removed',
  },
  { method: 'GET', path: '/passkey/generate-authenticate-options', isOptions: true },
  { method: 'POST', path: '/passkey/verify-authentication', body: strict({ response: credential }), isSignIn: true },
];

// As better-auth has it for passkeys: who finds an old sign-in must not make themselves another way in.
const FRESH_MS = 24 * 3600_000;

export function addOtherSignIns(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions): void {
  const { identity, limits, places, provider } = options;

  for (const call of passkeyCalls) {
    const validate = validatorOf({ body: call.body } as unknown as Route);
    app.route({
      method: call.method,
      url: AUTH_PATH + call.path,
      bodyLimit: STRANGER_BODY_BYTES,
      onRequest: async (request, reply) => {
        await enterConsole(options, request, reply);
        if (call.method === 'POST') requireOwnOrigin(request.headers, platform.publicUrl());
      },
      handler: async (request, reply) => {
        const visitor = visitorOf(options.callerOf(request));
        if (!call.asPerson && !call.isSignIn) limits.begin(visitor.ipAddress);
        const signIn = call.asPerson ? await identity.find(visitor.cookie) : undefined;
        if (call.asPerson && !signIn) throw signedOut();
        if (signIn && call.method === 'POST') requireCsrfToken(identity, signIn, request.headers);
        const body = call.body && (validate({ params: {}, query: {}, body: request.body }) as Record<string, unknown>);
        if (signIn && call.records === 'user.passkey_removed') {
          await requireOtherWayThanPasskey(platform.db, signIn.userId);
        }
        const ask = () => identity.handle({ method: call.method, path: AUTH_PATH + call.path, body }, visitor);
        const response = call.isSignIn ? await signInBy(visitor, body, ask) : await ask();
        const answer = await answerOf(response);
        if (call.isSignIn) await replaceSignIn(platform.db, identity, visitor, response.headers.getSetCookie());
        if (call.records && signIn) await recordOfPerson(platform, signIn.userId, visitor, { type: call.records });
        passCookies(response, reply);
        // better-auth would tell the page its own token, which the cookie keeps from it.
        if (call.isSignIn) return { signedIn: true };
        return call.isOptions ? { ...(answer as object), userVerification: 'required' } : answer;
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
        'This passkey is not known here, asked for no PIN, finger or face, or it took too long. Try again.',
      );
    return response;
  }

  if (!provider) return;

  // Answers where to go. With the token of a link a new person may come back; without one, only somebody who is known.
  app.post('/console/api/oidc', {
    bodyLimit: STRANGER_BODY_BYTES,
    onRequest: async (request, reply) => {
      await enterConsole(options, request, reply);
      requireOwnOrigin(request.headers, platform.publicUrl());
    },
    handler: async (request, reply) => {
      const visitor = visitorOf(options.callerOf(request));
      limits.begin(visitor.ipAddress);
      const { token, returnTo = '/console', link } = wishOf(request.body);
      if (link) {
        const signIn = await identity.find(visitor.cookie);
        if (!signIn) throw signedOut();
        requireCsrfToken(identity, signIn, request.headers);
        if (platform.clock.now().getTime() - signIn.since.getTime() > FRESH_MS) throw notFresh();
      }
      // A reset is for who has a password; a new person would be nobody's.
      if (token !== undefined && (await lookLink(platform, token)).type === 'passwordReset') {
        throw invalidField('token', 'must be of an invitation');
      }
      const kind = link ? 'link' : token !== undefined ? 'signUp' : 'signIn';
      const { url, setCookies } = await identity.startProvider({ kind, returnTo }, visitor);
      reply.header('set-cookie', setCookies);
      return { url };
    },
  });

  // By GET alone: it uses up the way that somebody came.
  app.get(`${AUTH_PATH}/callback/${PROVIDER_ID}`, { exposeHeadRoute: false }, async (request, reply) => {
    places.of(request, reply).lookUp(false);
    const query = request.raw.url?.split('?', 2)[1] ?? '';
    const path = `${AUTH_PATH}/callback/${PROVIDER_ID}?${query}`;
    const visitor = visitorOf(options.callerOf(request));
    const response = await identity.handle({ method: 'GET', path, body: undefined }, visitor);
    const location = response.headers.get('location');
    if (!location)
      throw new ApiError('invalid_request', 'The way back from the provider was not whole. Sign in again.');
    await replaceSignIn(platform.db, identity, visitor, response.headers.getSetCookie());
    passCookies(response, reply);
    return reply.redirect(location);
  });
}

const RP_ID_HASH_BYTES = 32;
const USER_VERIFIED = 0x04;

/**
 * Whether the authenticator says that it asked for a PIN, a finger or a face, as a passkey alone opens the account: whoever finds
 * a key must not. better-auth does not look, and checks the signature over these bytes.
 */
function isVerified(body: unknown): boolean {
  const { response } = (body ?? {}) as { response?: { response?: { authenticatorData?: unknown } } };
  const data = response?.response?.authenticatorData;
  const flags = typeof data === 'string' ? Buffer.from(data, 'base64url')[RP_ID_HASH_BYTES] : undefined;
  return ((flags ?? 0) & USER_VERIFIED) !== 0;
}

function notFresh(): ApiError {
  return new ApiError('sign_in_again', 'This needs a sign-in of the last 24 hours. Sign in again.');
}

function passCookies(response: Response, reply: FastifyReply): void {
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) reply.header('set-cookie', cookies);
}

async function answerOf(response: Response): Promise<unknown> {
  const answer = (await response.json().catch(() => ({}))) as { message?: string };
  if (response.ok) return answer;
  const detail = answer.message ?? 'It did not work. Try again.';
  switch (response.status) {
    case 401:
      throw new ApiError('not_found', 'There is no such passkey of yours.');
    case 403:
      throw notFresh();
    case 404:
      throw new ApiError('not_found', detail);
    case 400:
      throw new ApiError('invalid_request', `${detail}.`);
    default:
      throw new ApiError('unavailable', 'It did not work now. Try again soon.', { retryAfterSeconds: 1 });
  }
}

function wishOf(body: FastifyRequest['body']): { token?: string; returnTo?: string; link?: boolean } {
  const given = (body ?? {}) as Record<string, unknown>;
  const { token, returnTo, link, ...others } = given;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalidField(unknown, 'is not a known field');
  if (token !== undefined && typeof token !== 'string') throw invalidField('token', 'must be a string');
  if (link !== undefined && typeof link !== 'boolean') throw invalidField('link', 'must be true or false');
  // A page of the console, and nothing that a browser would take for another host.
  if (returnTo !== undefined && !(typeof returnTo === 'string' && /^\/console(\/[\w./?=&%-]*)?$/.test(returnTo))) {
    throw invalidField('returnTo', 'must be a path of the console, such as /console/link');
  }
  return { ...(token !== undefined && { token }), ...(returnTo !== undefined && { returnTo }), ...(link && { link }) };
}
