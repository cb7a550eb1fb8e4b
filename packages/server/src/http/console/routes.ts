// How the console's own calls are answered: who may make them, and what they have to send with it.
import type { Route } from '@signalbox/contract';
import { type ConsoleBody, type ConsoleCall, type ConsoleResult, consoleRoutes } from '@signalbox/contract/console';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Identity, SignIn, Visitor } from '../../people/identity.ts';
import type { Platform } from '../../platform.ts';
import { type Admission, STRANGER_BODY_BYTES } from '../admission/admission.ts';
import type { Limits } from '../admission/limits.ts';
import { callerOf } from '../auth/auth.ts';
import type { Reauthorization } from '../auth/reauthorize.ts';
import { requireCsrfToken, requireOwnOrigin, signedOut, visitorOf } from '../auth/session-cookie.ts';
import { validatorOf } from '../body/validate.ts';

export interface ConsoleApiOptions {
  version: string;
  identity: Identity;
  provider: { name: string } | undefined;
  limits: Limits;
  admission: Admission;
  reauthorization: Reauthorization;
}

/** One call, with the visitor and their sign-in, if any. */
export interface Call<B> {
  visitor: Visitor;
  signIn: SignIn | undefined;
  body: B;
  reply: FastifyReply;
}

/** The path of a call of the contract. */
export const pathOf = (call: ConsoleCall) => `/console/api${call.slice(call.indexOf(' ') + 1)}`;
/** The result of a call in the contract; void if it is empty. */
type ResultOf<C extends ConsoleCall> = Promise<object extends ConsoleResult<C> ? void : ConsoleResult<C>>;

/** Gives a call that needs no sign-in a slot: one of the strangers’, unless it has the cookie of a valid sign-in. */
export async function enterConsole(
  { admission, identity }: Pick<ConsoleApiOptions, 'admission' | 'identity'>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { headers, ipAddress } = callerOf(request);
  const slot = admission.of(request, reply);
  if (identity.cookieIn(headers.cookie) !== undefined) {
    slot.identifyCaller(false);
    const signIn = await identity.find(headers.cookie);
    if (signIn) return slot.work(signIn.userId);
  }
  slot.serveStranger(ipAddress);
}

/** Adds routes for calls of the contract. */
export function consoleRoutesOn(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions) {
  const { identity, admission } = options;

  /** `asPerson`: only for signed-in people. `optional`: for everyone; a sign-in that is used needs its CSRF token. */
  function post<C extends ConsoleCall & `POST ${string}`>(
    call: C,
    who: 'anybody' | 'asPerson' | 'optional',
    act: (call: Call<ConsoleBody<C>>) => ResultOf<C>,
  ): void {
    const validate = validatorOf(consoleRoutes[call] as unknown as Route);
    app.post(pathOf(call), {
      bodyLimit: STRANGER_BODY_BYTES,
      onRequest: async (request, reply) => {
        await enterConsole(options, request, reply);
        requireOwnOrigin(request.headers, platform.publicUrl());
      },
      handler: async (request, reply) => {
        const visitor = visitorOf(callerOf(request));
        const signIn = who === 'anybody' ? undefined : await identity.find(visitor.cookie);
        if (who === 'asPerson' && !signIn) throw signedOut();
        if (signIn) requireCsrfToken(identity, signIn, request.headers);
        const body = validate({ params: {}, query: request.query, body: request.body }) as ConsoleBody<C>;
        return (await act({ visitor, signIn, body, reply })) ?? {};
      },
    });
  }

  /** For signed-in people. */
  function get<C extends ConsoleCall & `GET ${string}`>(
    call: C,
    act: (call: Call<undefined> & { signIn: SignIn }) => ResultOf<C>,
  ): void {
    app.get(pathOf(call), async (request, reply) => {
      admission.of(request, reply).identifyCaller(false);
      const visitor = visitorOf(callerOf(request));
      const signIn = await identity.find(visitor.cookie);
      if (!signIn) throw signedOut();
      return act({ visitor, signIn, body: undefined, reply });
    });
  }

  return { get, post };
}
