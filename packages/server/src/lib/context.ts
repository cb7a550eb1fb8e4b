// Who is calling, for which organization: what a domain function is handed.
import type { Event, Permission, Role } from '@signalbox/contract';
import type { Db, Tx } from '../db/db.ts';
import type { Platform } from '../platform.ts';

export type Actor = Event['actor'];

/** A member of the organization, for one request. */
export interface Person {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly role: Role;
}

export interface Context extends Omit<Platform, 'db'> {
  /**
   * Where the call reads and writes: its transaction if there is one, else the pool. There is no way to the pool beside it, because
   * a call that waits for a second connection while it holds one waits indefinitely once there are as many such calls as connections.
   */
  readonly db: Db | Tx;
  readonly organizationId: string;
  readonly actor: Actor;
  /** The key or the person of the call; null where the service itself acts. */
  readonly callerId: string | null;
  /** The key of the call, where it was made with one. */
  readonly keyId: string | null;
  /** The person of the call, where one who is signed in to the console made it. */
  readonly person?: Person;
  readonly permission: Permission;
  /** Of a key that is limited to some: the only Environments that it reaches (http/request/environment-gate.ts sees to it). */
  readonly environments?: readonly string[];
  readonly requestId: string | null;
  readonly ipAddress: string | null;
  readonly userAgent: string | null;
  /** Of the request's span, where it is traced. */
  readonly traceParent?: string;
  /** Of a route that is `repeatable` by itself. */
  readonly idempotencyKey?: string;
  /** Aborted when nobody waits for the answer any more: the caller has gone, or the node stops. */
  readonly signal?: AbortSignal;
}

/** A call that is in no transaction: every GET, and the changes that the contract calls `repeatable` or `actsOutside`. */
export interface PoolContext extends Context {
  readonly db: Db;
}

/**
 * Runs `fn` in the call's transaction if there is one, else in one of its own. What `fn` gets second is the same call with that
 * transaction as its `db`; it has the name of the outer one, so that the outer one can't be used by mistake (house rule).
 */
export function inTransaction<C extends { readonly db: Db | Tx }, T>(
  ctx: C,
  fn: (tx: Tx, ctx: Omit<C, 'db'> & { readonly db: Tx }) => Promise<T>,
): Promise<T> {
  const { db } = ctx;
  const run = (tx: Tx) => fn(tx, { ...ctx, db: tx });
  return 'transaction' in db ? db.transaction(run) : run(db);
}
