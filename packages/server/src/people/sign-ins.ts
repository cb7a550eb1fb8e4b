// The sign-ins of a person: where they are signed in, and how that ends. A sign-in is a row; without it the cookie is invalid from the
// next request on, on every node.
import sql from 'sql-template-tag';
import type { Db, Queryable, Tx } from '../db/db.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Platform } from '../platform.ts';

export interface SignInRow {
  signInId: string;
  createdAt: Date;
  lastUsedAt: Date;
  ipAddress: string | null;
  userAgent: string | null;
}

/** Sign-ins that have not ended, newest first. */
export function signInsOf(db: Db, userId: string, now: Date): Promise<SignInRow[]> {
  return db.query<SignInRow>(sql`
    select id as "signInId", created_at as "createdAt", updated_at as "lastUsedAt", ip_address as "ipAddress",
      user_agent as "userAgent"
    from sign_ins where user_id = ${userId} and expires_at > ${now} order by id desc limit 100`);
}

/** Ends one sign-in of the person. False if they have none with this id. */
export async function endSignIn(db: Db, userId: string, signInId: string): Promise<boolean> {
  return (await db.execute(sql`delete from sign_ins where user_id = ${userId} and id = ${signInId}`)) > 0;
}

export async function endSignIns(db: Db, userId: string): Promise<void> {
  await db.execute(sql`delete from sign_ins where user_id = ${userId}`);
}

/** How a person can sign in. */
export interface SignInMethods {
  password: boolean;
  provider: boolean;
  /** The number of passkeys. */
  passkeys: number;
}

export async function signInMethods(db: Queryable, userId: string): Promise<SignInMethods> {
  const rows = await db.query<{ providerId: string }>(sql`
    select provider_id as "providerId" from accounts where user_id = ${userId}
    union all
    select 'passkey' from passkeys where user_id = ${userId}`);
  const has = (id: string) => rows.some(({ providerId }) => providerId === id);
  const passkeys = rows.filter(({ providerId }) => providerId === 'passkey').length;
  return { password: has('credential'), provider: has('oidc'), passkeys };
}

/** Disconnects the provider. False if none is connected; throws 409 `conflict` if it is the person's last sign-in method. */
export function disconnectProvider(db: Db, userId: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query(sql`select 1 from users where id = ${userId} for no key update`);
    const removed = await tx.execute(sql`delete from accounts where user_id = ${userId} and provider_id = 'oidc'`);
    if (removed === 0) return false;
    await requireWayIn(tx, userId);
    return true;
  });
}

/** Throws 409 `conflict` if the person has no sign-in method left. */
export async function requireWayIn(tx: Tx, userId: string): Promise<void> {
  const { password, provider, passkeys } = await signInMethods(tx, userId);
  if (password || provider || passkeys > 0) return;
  throw new ApiError('conflict', 'This is your last sign-in method. Add another one first.');
}

/** Deletes expired sign-ins and unused challenges. */
export async function dropExpiredSignIns({ db }: Pick<Platform, 'db'>, now: Date, signal: AbortSignal): Promise<void> {
  await deleteInBatches(db, signal, {
    // Locked, because using a sign-in extends it.
    find: (limit) => sql`select id from sign_ins where expires_at <= ${now} order by expires_at ${limit} for update`,
    drop: sql`delete from sign_ins s using old where s.id = old.id`,
  });
  await deleteInBatches(db, signal, {
    find: (limit) =>
      sql`select id from verifications where expires_at <= ${now} order by expires_at ${limit} for update`,
    drop: sql`delete from verifications v using old where v.id = old.id`,
  });
}
