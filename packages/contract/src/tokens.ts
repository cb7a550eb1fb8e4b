/** Session tokens: what a program of an end user, such as a page in a browser, calls with instead of an API key. */

import { EndUser } from './end-users.ts';
import { EnvironmentName, Id, OneOf, type Static, Strict, Timestamp, Type } from './schema.ts';
import type { Scope } from './scopes.ts';

/**
 * What a token can do, in its sessions and nowhere else.
 *
 * - `read`: read and stream a session, its messages, its files and its approvals
 * - `send`: send messages, tool results and files; interrupt and retry turns
 * - `decide`: decide approvals that the policy of the tool leaves to the end user
 * - `open`: open, fork and list sessions; only for tokens of an end user
 */
export const tokenScopes = ['read', 'send', 'decide', 'open'] as const;
export const TokenScope = OneOf(tokenScopes, {
  title: 'TokenScope',
  description:
    '`read` reads and streams, `send` sends messages, tool results and files and stops turns, `decide` decides approvals that are left to the end user, `open` opens, forks and lists sessions.',
});
export type TokenScope = Static<typeof TokenScope>;

/** The scope that a key needs to create a token with each of these, and has to keep for as long as the token is used. */
export const scopeBehind = {
  read: 'sessions:read',
  send: 'sessions:run',
  decide: 'approvals:decide',
  open: 'sessions:run',
} as const satisfies Record<TokenScope, Scope>;

/** How long a token can be valid, in seconds. */
export const longestTokenSeconds = 86_400;

const expiresInSeconds = Type.Optional(
  Type.Integer({
    minimum: 60,
    maximum: longestTokenSeconds,
    default: 3_600,
    description: 'How long the token is valid. The page that uses it can get a new one at any time.',
  }),
);
const scopeList = <const V extends readonly TokenScope[]>(values: V) =>
  Type.Array(OneOf(values), { minItems: 1, maxItems: values.length, uniqueItems: true });

export const CreateSessionToken = Strict(
  { scopes: scopeList(['read', 'send', 'decide']), expiresInSeconds },
  { title: 'CreateSessionToken' },
);
export const CreateEndUserToken = Strict(
  {
    agentId: Id('agt'),
    environment: EnvironmentName,
    endUser: EndUser,
    scopes: scopeList(tokenScopes),
    expiresInSeconds,
  },
  { title: 'CreateEndUserToken' },
);

export const SessionToken = Type.Object(
  {
    token: Type.Optional(
      Type.String({
        description:
          'Give it to the end user only. It ends when it expires, and when the key that created it is rotated or deleted. Absent only from an idempotent replay that was requested with another credential.',
      }),
    ),
    expiresAt: Timestamp,
    scopes: Type.Array(TokenScope),
  },
  { title: 'SessionToken' },
);
export type SessionToken = Static<typeof SessionToken>;

/** The longest token. A longer one is refused unread. */
export const longestToken = 4_096;

/** The web pages that tokens can be used from. */
export const AllowedOrigins = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 300,
    description: 'An origin, or `https://*.` and a domain for all of its subdomains.',
    examples: ['https://app.example.com', 'https://*.example.com', 'http://localhost:5173'],
  }),
  { maxItems: 50, uniqueItems: true },
);
