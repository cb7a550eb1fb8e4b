// What the console needs in addition to `/api/v1`, below `/console/api`: signing in and out, the account, and following a link. Its
// shapes are in the contract (console.ts) but not in OpenAPI: the console of this version is its only client.
//
// A change must come from our own page (session-cookie.ts); one made by a signed-in person also needs the CSRF token.
import { permissionWithin, scopesOfRole } from '@signalbox/contract';
import type { Account } from '@signalbox/contract/console';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import { formatId } from '../../lib/ids.ts';
import { createOrganizationForPerson } from '../../organizations/manage.ts';
import { PROVIDER_ID, type SignIn, type Visitor } from '../../people/identity.ts';
import { acceptLink, readLink } from '../../people/links.ts';
import { membershipsOf } from '../../people/memberships/memberships.ts';
import { requireGoodPassword } from '../../people/password.ts';
import { createSignInFailureRecorder, recordOfPerson } from '../../people/records.ts';
import { disconnectProvider, endSignIn, endSignIns, signInMethods, signInsOf } from '../../people/sign-ins.ts';
import type { Platform } from '../../platform.ts';
import { callerOf } from '../auth/auth.ts';
import { replaceSignIn, visitorOf } from '../auth/session-cookie.ts';
import { type ConsoleApiOptions, consoleRoutesOn, pathOf } from './routes.ts';

export function addConsoleApi(app: FastifyInstance, platform: Platform, options: ConsoleApiOptions): void {
  const { identity, limits, admission, reauthorization, provider, version } = options;
  const { get, post } = consoleRoutesOn(app, platform, options);
  const noteFailure = createSignInFailureRecorder(platform);
  const background = new Set<Promise<void>>();
  app.addHook('onClose', async () => void (await Promise.all(background)));

  function inBackground(work: Promise<void>): void {
    const known = work
      .catch((error) => platform.log.warn({ err: error }, 'recording a failed sign-in failed'))
      .finally(() => background.delete(known));
    background.add(known);
  }

  async function accountOf(signIn: SignIn | undefined): Promise<Account> {
    const memberships = signIn ? await membershipsOf(platform.db, signIn.userId) : [];
    const publicUrl = platform.publicUrl();
    return {
      user: signIn ? { userId: formatId('usr', signIn.userId), name: signIn.name, email: signIn.email } : null,
      csrfToken: signIn ? identity.csrfTokenOf(signIn) : null,
      organizations: memberships.map(({ organizationId, name: called, role }) => ({
        organizationId: formatId('org', organizationId),
        name: called,
        role,
        permission: permissionWithin(scopesOfRole[role])!,
        mayDecide: scopesOfRole[role].has('approvals:decide'),
      })),
      signIn: {
        password: true,
        // Browsers allow passkeys only for https and for localhost.
        passkey: publicUrl.protocol === 'https:' || publicUrl.hostname === 'localhost',
        providers: provider ? [{ id: PROVIDER_ID, name: provider.name }] : [],
      },
      version,
    };
  }

  /** The account of a new sign-in, whose cookie is sent with the response. The previous sign-in ends. */
  async function accountOfBegun(
    reply: FastifyReply,
    { visitor }: { visitor: Visitor },
    setCookies: readonly string[],
  ): Promise<Account> {
    const signIn = await replaceSignIn(platform.db, identity, visitor, setCookies);
    reply.header('set-cookie', setCookies);
    return accountOf(signIn);
  }

  app.get(pathOf('GET /account'), async (request, reply): Promise<Account> => {
    admission.of(request, reply).identifyCaller(false);
    const { signIn, setCookies } = await identity.refresh(visitorOf(callerOf(request)));
    if (setCookies.length > 0) reply.header('set-cookie', setCookies);
    return accountOf(signIn);
  });

  post('POST /sign_in', 'anybody', async ({ visitor, body, reply }) => {
    const begun = await limits.signIn(visitor.ipAddress, body.email, () =>
      identity.signIn(body.email, body.password, visitor),
    );
    if (!begun) {
      // Not awaited: its duration would reveal whether the person exists.
      inBackground(noteFailure(body.email, visitor));
      throw new ApiError('sign_in_failed', 'Email or password is wrong.');
    }
    return accountOfBegun(reply, { visitor }, begun.setCookies);
  });

  post('POST /sign_out', 'optional', async ({ visitor, signIn, body, reply }) => {
    if (signIn) {
      if (body.everywhere) await endSignIns(platform.db, signIn.userId);
      else await endSignIn(platform.db, signIn.userId, signIn.signInId);
      reauthorization.announceAccessChange(signIn.userId);
      await recordOfPerson(platform, signIn.userId, visitor, { type: 'user.signed_out' });
    }
    reply.header('set-cookie', identity.clearing());
    return accountOf(undefined);
  });

  post('POST /links/look', 'anybody', async ({ visitor, body }) => {
    limits.startSignIn(visitor.ipAddress);
    const { expiresAt, organizationId: _, ...link } = await readLink(platform, body.token);
    return { link: { ...link, expiresAt: expiresAt.toISOString() } };
  });

  post('POST /links/accept', 'optional', async ({ visitor, signIn, body, reply }) => {
    limits.startSignIn(visitor.ipAddress);
    const { userId, isNewSignIn } = await acceptLink(platform, visitor, signIn, body);
    reauthorization.announceAccessChange(userId);
    if (!isNewSignIn) return accountOf(signIn);
    const { setCookies } = await identity.begin(userId, visitor);
    return accountOfBegun(reply, { visitor }, setCookies);
  });

  post('POST /organizations', 'asPerson', async ({ visitor, signIn, body, reply }) => {
    await createOrganizationForPerson(platform, visitor, signIn!, body.name);
    reply.code(201);
    return accountOf(signIn);
  });

  post('POST /password', 'asPerson', async ({ visitor, signIn, body, reply }) => {
    requireGoodPassword(body.newPassword, signIn!, 'newPassword');
    const begun = await limits.signIn(visitor.ipAddress, signIn!.email, () =>
      identity.changePassword(body.currentPassword, body.newPassword, visitor),
    );
    if (!begun) {
      // An attacker with a stolen cookie would guess here.
      inBackground(noteFailure(signIn!.email, visitor));
      throw new ApiError('sign_in_failed', 'The current password is wrong.');
    }
    reauthorization.announceAccessChange(signIn!.userId);
    await recordOfPerson(platform, signIn!.userId, visitor, { type: 'user.password_changed' });
    return accountOfBegun(reply, { visitor }, begun.setCookies);
  });

  post('POST /oidc/disconnect', 'asPerson', async ({ visitor, signIn }) => {
    if (!(await disconnectProvider(platform.db, signIn!.userId))) {
      throw new ApiError('not_found', 'No provider account is connected.');
    }
    await recordOfPerson(platform, signIn!.userId, visitor, { type: 'user.provider_disconnected' });
  });

  get('GET /sign_ins', async ({ signIn }) => {
    const rows = await signInsOf(platform.db, signIn.userId, platform.clock.now());
    return {
      signIns: rows.map(({ signInId, createdAt, lastUsedAt, ...row }) => ({
        signInId,
        createdAt: createdAt.toISOString(),
        lastUsedAt: lastUsedAt.toISOString(),
        ...row,
        isThis: signInId === signIn.signInId,
      })),
      ways: await signInMethods(platform.db, signIn.userId),
    };
  });

  post('POST /sign_ins/end', 'asPerson', async ({ visitor, signIn, body }) => {
    if (!(await endSignIn(platform.db, signIn!.userId, body.signInId))) {
      throw new ApiError('not_found', 'This sign-in has already ended.');
    }
    reauthorization.announceAccessChange(signIn!.userId);
    await recordOfPerson(platform, signIn!.userId, visitor, { type: 'user.signed_out' });
  });
}
