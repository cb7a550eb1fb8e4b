/**
 * The console's own API, below `/console/api`: signing in and out, the account, links with a one-time token. Not part of
 * `/api/v1` or of OpenAPI: the console of the same version is its only caller.
 *
 * The body or result is `{}` if a call has none. A POST by a signed-in user needs the header `x-signalbox-csrf` with the
 * account's `csrfToken`.
 */
import type { TObject } from 'typebox';
import { Email, Role } from './people.ts';
import { Id, Json, Name, Nullable, OneOf, type Static, Strict, Timestamp, type TSchema, Type } from './schema.ts';
import { Permission } from './scopes.ts';
import { SessionStatus } from './session-state.ts';
import { Message } from './sessions.ts';

// The password rules refuse long ones anyway; this only bounds the work.
const Password = Type.String({ minLength: 1, maxLength: 1000 });
const Token = Type.String({ minLength: 1, maxLength: 200 });

const Membership = Type.Object({
  organizationId: Id('org'),
  name: Type.String(),
  role: Role,
  /** The greatest whose scopes the role includes. */
  permission: Permission,
  /** Whether the role includes deciding approvals. */
  mayDecide: Type.Boolean(),
});

/** Every page of the console loads this first. */
const Account = Type.Object({
  user: Nullable(Type.Object({ userId: Id('usr'), name: Type.String(), email: Type.String() }), {
    description: 'Null if not signed in; then `csrfToken` is null and `organizations` is empty.',
  }),
  csrfToken: Nullable(Type.String()),
  organizations: Type.Array(Membership),
  signIn: Type.Object(
    {
      password: Type.Boolean(),
      passkey: Type.Boolean({ description: 'Browsers allow passkeys for https and for localhost.' }),
      providers: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
    },
    { description: 'The ways to sign in that this installation offers.' },
  ),
  version: Type.String({ description: 'Version of the service.' }),
});

const Link = Type.Object({
  type: OneOf(['setup', 'invitation', 'passwordReset']),
  organizationName: Type.String(),
  role: Nullable(Role, { description: 'Null for a password reset.' }),
  email: Nullable(Type.String(), { description: 'The only email address that can use the link; null: any.' }),
  name: Nullable(Type.String()),
  expiresAt: Timestamp,
});

const SignIn = Type.Object({
  signInId: Type.String({ format: 'uuid' }),
  createdAt: Timestamp,
  lastUsedAt: Timestamp,
  ipAddress: Nullable(Type.String()),
  userAgent: Nullable(Type.String()),
  isThis: Type.Boolean({ description: 'Whether it is the sign-in of this request.' }),
});

/** How this user can sign in. */
const Ways = Type.Object({
  password: Type.Boolean(),
  provider: Type.Boolean(),
  passkeys: Type.Integer({ description: 'How many.' }),
});

const Passkey = Type.Object({
  id: Type.String(),
  name: Nullable(Type.String()),
  createdAt: Nullable(Type.String()),
});

/** What a browser's passkey dialog creates. */
const Credential = Type.Object({});
/** What a browser's passkey dialog takes: `PublicKeyCredentialCreationOptionsJSON` or its counterpart for signing in. */
const PasskeyOptions = Type.Object({ challenge: Type.String() });

/** What a share link shows of its session. */
const SharedPage = Type.Object({
  title: Nullable(Type.String()),
  includesTools: Type.Boolean(),
  expiresAt: Timestamp,
  status: SessionStatus,
  createdAt: Timestamp,
  messages: Type.Array(Message, { description: 'Newest first.' }),
  page: Type.Object({ hasMore: Type.Boolean(), nextCursor: Type.String() }),
});

const Empty = Strict({});

interface ConsoleRoute {
  body?: TObject;
  result: TSchema;
}

const table = <const T extends Record<`${'GET' | 'POST'} /${string}`, ConsoleRoute>>(routes: T) => routes;

/** Method and path below `/console/api`, with what each call takes and returns. */
export const consoleRoutes = table({
  'GET /account': { result: Account },
  'POST /sign_in': {
    body: Strict({ email: Type.String({ minLength: 1, maxLength: 254 }), password: Password }),
    result: Account,
  },
  'POST /sign_out': { body: Strict({ everywhere: Type.Optional(Type.Boolean()) }), result: Account },
  'POST /links/look': { body: Strict({ token: Token }), result: Type.Object({ link: Link }) },
  'POST /links/accept': {
    body: Strict({
      token: Token,
      name: Type.Optional(Name),
      email: Type.Optional(Email),
      password: Type.Optional(Password),
      organizationName: Type.Optional(Name),
    }),
    result: Account,
  },
  'POST /shares/read': {
    body: Strict({ token: Token, cursor: Type.Optional(Type.String({ maxLength: 500 })) }),
    result: SharedPage,
  },
  'POST /shares/file': { body: Strict({ token: Token, fileId: Id('file') }), result: Json },
  'POST /organizations': { body: Strict({ name: Name }), result: Account },
  'POST /password': { body: Strict({ currentPassword: Password, newPassword: Password }), result: Account },
  'GET /sign_ins': { result: Type.Object({ signIns: Type.Array(SignIn), ways: Ways }) },
  'POST /sign_ins/end': { body: Strict({ signInId: Type.String({ format: 'uuid' }) }), result: Empty },
  'POST /oidc': {
    body: Strict({
      token: Type.Optional(
        Type.String({
          description: 'Token of an invitation, which a new user accepts by signing in with the provider.',
        }),
      ),
      returnTo: Type.Optional(
        // Excludes anything that a browser would take for another host.
        Type.String({
          pattern: '^/console(/[\\w./?=&%-]*)?$',
          'x-expected': 'a path of the console, such as /console/link',
        }),
      ),
      link: Type.Optional(Type.Boolean({ description: 'Connect the provider to the signed-in user.' })),
    }),
    result: Type.Object({ url: Type.String({ description: "The provider's page." }) }),
  },
  'POST /oidc/disconnect': { body: Empty, result: Empty },
  'GET /auth/passkey/generate-register-options': { result: PasskeyOptions },
  'POST /auth/passkey/verify-registration': {
    body: Strict({ response: Credential, name: Type.Optional(Type.String({ maxLength: 200 })) }),
    result: Empty,
  },
  'GET /auth/passkey/list-user-passkeys': { result: Type.Array(Passkey) },
  'POST /auth/passkey/delete-passkey': { body: Strict({ id: Type.String({ format: 'uuid' }) }), result: Empty },
  'GET /auth/passkey/generate-authenticate-options': { result: PasskeyOptions },
  'POST /auth/passkey/verify-authentication': {
    body: Strict({ response: Credential }),
    result: Type.Object({ signedIn: Type.Literal(true) }),
  },
});

type Routes = typeof consoleRoutes;
/** Such as `POST /sign_in`. */
export type ConsoleCall = keyof Routes;
/** The body that a call takes. */
export type ConsoleBody<C extends ConsoleCall> = Routes[C] extends { body: infer B extends TSchema }
  ? Static<B>
  : undefined;
export type ConsoleResult<C extends ConsoleCall> = Static<Routes[C]['result']>;

/** Who is signed in, and where they are a member. */
export type Account = Static<typeof Account>;
export type Membership = Static<typeof Membership>;
/** What a link leads to, as its page shows it. */
export type Link = Static<typeof Link>;
/** One browser in which the person is signed in. */
export type SignIn = Static<typeof SignIn>;
export type Passkey = Static<typeof Passkey>;
/** What a share link shows, a page at a time. */
export type SharedPage = Static<typeof SharedPage>;
