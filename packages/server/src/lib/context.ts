// Who is calling, for which organization: what a domain function is handed.
import type { Event, Permission, Role } from '@signalbox/contract';
import type { Tx } from '../db/db.ts';
import type { Platform } from '../platform.ts';

export type Actor = Event['actor'];

/** A member of the organization, for one request. */
export interface Person {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly role: Role;
}

export interface Context extends Platform {
  readonly organizationId: string;
  readonly actor: Actor;
  /** The key or the person of the call; null where the service itself acts. */
  readonly callerId: string | null;
  /** The key of the call, where it was made with one. */
  readonly keyId: string | null;
  /** The person of the call, where one who is signed in to the console made it. */
  readonly person?: Person;
  readonly permission: Permission;
  /** Of a key that is limited to some: the only Environments that it reaches (http/environment-gate.ts sees to it). */
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
  /** The transaction of an idempotent request, which the change joins. */
  readonly tx?: Tx;
}

/** Runs `fn` in the transaction of the request where there is one, else in one of its own. */
export function inTransaction<T>(ctx: Context, fn: (tx: Tx) => Promise<T>): Promise<T> {
  return ctx.tx ? fn(ctx.tx) : ctx.db.transaction(fn);
}
