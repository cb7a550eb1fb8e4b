// Records in the event log of what people do with their account: signing in and out, passwords, passkeys. A person may be in several
// organizations, and each of them has to know who gets in, so such a record is in the log of every one.
import type { EventType } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { type EventDraft, type EventSource, recordEvent } from '../events/record.ts';
import type { Actor } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import type { Visitor } from './identity.ts';
import { organizationIdsOf } from './memberships/memberships.ts';

type PersonalDraft = Pick<EventDraft, 'outcome'> & { type: Extract<EventType, `user.${string}`> };

/** As the event log names a person. */
export function actorOf({ userId, name }: { userId: string; name: string }): Actor {
  return { type: 'user', id: formatId('usr', userId), name };
}

/** The source of a record of what a visitor did in an organization. */
export function visitorSource(organizationId: string, actor: Actor, visitor: Visitor | undefined): EventSource {
  return {
    organizationId,
    actor,
    requestId: visitor?.requestId ?? null,
    ipAddress: visitor?.ipAddress ?? null,
    userAgent: visitor?.userAgent ?? null,
  };
}

/** The resource of a record about a person. */
export function userResource(userId: string): EventDraft['resource'] {
  return { type: 'user', id: formatId('usr', userId) };
}

/** Records an action of a person on their own account, in each of their organizations. */
export async function recordOfPerson(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  userId: string,
  visitor: Visitor,
  draft: PersonalDraft,
): Promise<void> {
  await db.transaction((tx) => recordInTransaction(tx, clock.now(), userId, visitor, draft));
}

/** The same, in the transaction of the action. */
export async function recordInTransaction(
  tx: Tx,
  now: Date,
  userId: string,
  visitor: Visitor,
  draft: PersonalDraft,
): Promise<void> {
  const [user] = await tx.query<{ name: string }>(sql`select name from users where id = ${userId}`);
  if (!user) return;
  const actor = actorOf({ userId, name: user.name });
  for (const organizationId of await organizationIdsOf(tx, userId)) {
    const source = visitorSource(organizationId, actor, visitor);
    await Promise.all([
      tx.query(recordEvent(source, now, { ...draft, resource: userResource(userId) })),
      draft.type === 'user.signed_in' && noteSignIn(tx, organizationId, userId, now),
    ]);
  }
}

function noteSignIn(tx: Tx, organizationId: string, userId: string, now: Date): Promise<number> {
  return tx.execute(sql`
    update members set last_signed_in_at = ${now}
    where organization_id = ${organizationId} and user_id = ${userId}`);
}

const FAILURE_EVERY_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** Records a sign-in with a wrong password, at most once a minute for each person on a node. */
export function createSignInFailureRecorder(platform: { db: Db; clock: Platform['clock'] }) {
  const notedAt = new Map<string, number>();
  return async (email: string, visitor: Visitor): Promise<void> => {
    const now = platform.clock.now().getTime();
    // Queried for an unknown email too, so that the work does not reveal which emails exist.
    const [user] = await platform.db.query<{ id: string }>(
      sql`select id from users where email = ${email.toLowerCase()}`,
    );
    const id = user?.id ?? '';
    if (now - (notedAt.get(id) ?? Number.NEGATIVE_INFINITY) < FAILURE_EVERY_MS) return;
    if (notedAt.size >= MAX_REMEMBERED) notedAt.clear();
    notedAt.set(id, now);
    if (user) await recordOfPerson(platform, user.id, visitor, { type: 'user.sign_in_failed', outcome: 'denied' });
  };
}
