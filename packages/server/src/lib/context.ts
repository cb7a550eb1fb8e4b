// The first argument of every domain function: who made the request, and for which organization.
import type { EndUser, Event, Scope, TokenScope } from '@signalbox/contract';
import type { Db, Tx } from '../db/db.ts';
import type { Access } from '../people/memberships/can-decide.ts';
import type { Platform } from '../platform.ts';

export type Actor = Event['actor'];

/** A member of the organization, for one request. */
export interface Person extends Access {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
}

/** What the session token of a request reaches. */
export interface TokenReach {
  /** Null: all sessions that the end user has with the agent in the environment. */
  readonly sessionId: string | null;
  readonly agentId: string;
  readonly environment: string;
  readonly endUser: EndUser | null;
  readonly scopes: readonly TokenScope[];
  readonly expiresAt: Date;
}

export interface Context extends Omit<Platform, 'db'> {
  /**
   * Where the request reads and writes: its transaction if there is one, else the pool. The pool is not available next to a
   * transaction: a request that waits for a second connection while it has one never gets it once there are as many such requests
   * as connections.
   */
  readonly db: Db | Tx;
  readonly organizationId: string;
  readonly actor: Actor;
  /** The key or user of the request; null if the service acts by itself. */
  readonly callerId: string | null;
  /** The API key of the request, if it has one. */
  readonly keyId: string | null;
  /** The hash of the secret that the request was sent with: a token that it creates ends with this secret. */
  readonly keySecretHash?: Buffer;
  /** For a request with a session token, whose key is `keyId`: what it reaches, as http/auth/token-gate.ts enforces. */
  readonly token?: TokenReach;
  /** Who created the key, as `api_keys.created_by` has it. */
  readonly keyCreatedBy?: readonly string[];
  /** The signed-in user of a request from the console. */
  readonly person?: Person;
  /** The key was not looked up yet (http/auth/recalled-caller.ts): nothing may be recorded about the caller. */
  readonly isRecalled?: boolean;
  /** What the caller can do. */
  readonly scopes: ReadonlySet<Scope>;
  /** For a limited key: the only environments that it can access, as http/auth/environment-gate.ts enforces. */
  readonly environments?: readonly string[];
  /** For a limited key: the only agents that it can use, as http/auth/agent-gate.ts enforces. */
  readonly agents?: readonly string[];
  /** The limit of a key that has its own. */
  readonly requestsPerMinute?: number;
  /** The limit of the key `keyId` when the request began; null: no limit. */
  readonly maxCostUsdPerDay?: number | null;
  readonly requestId: string | null;
  readonly ipAddress: string | null;
  readonly userAgent: string | null;
  /** The `traceparent` of the request's span, if it is traced. */
  readonly traceParent?: string;
  /** Only for a route that is `repeatable` by itself. */
  readonly idempotencyKey?: string;
  /** Aborted when the response is no longer needed: the client has disconnected, or the node is stopping. */
  readonly signal?: AbortSignal;
}

/** A request without a transaction: every GET, and the changes that the contract marks `repeatable` or `actsOutside`. */
export interface PoolContext extends Context {
  readonly db: Db;
}

/**
 * Runs `fn` in the request's transaction if there is one, else in a new one. The second argument of `fn` is the same context with that
 * transaction as its `db`. Name it `ctx` too, so that the outer one can't be used by mistake (a house rule checks it).
 */
export function inTransaction<C extends { readonly db: Db | Tx }, T>(
  ctx: C,
  fn: (tx: Tx, ctx: Omit<C, 'db'> & { readonly db: Tx }) => Promise<T>,
): Promise<T> {
  const { db } = ctx;
  const run = (tx: Tx) => fn(tx, { ...ctx, db: tx });
  return 'transaction' in db ? db.transaction(run) : run(db);
}
