// What people do beside the resources, in the event log: signing in and out, passwords, passkeys. A person may be of several
// organizations, and each of these has to know who comes in: such a record stands in the log of every one.
import type { EventType } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { type EventDraft, type EventSource, recordEvent } from '../events/record.ts';
import type { Actor } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import type { Visitor } from './identity.ts';
import { organizationIdsOf } from './memberships.ts';

type PersonalEvent = Extract<EventType, `user.${string}`>;

/** As the event log names a person. */
export function actorOf({ userId, name }: { userId: string; name: string }): Actor {
  return { type: 'user', id: formatId('usr', userId), name };
}

/** For a record of what a visitor did in an organization. */
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

/** Writes a record of what a person did of themselves, in each of their organizations. */
export async function recordOfPerson(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  userId: string,
  visitor: Visitor,
  draft: Pick<EventDraft, 'outcome'> & { type: PersonalEvent },
): Promise<void> {
  const [user] = await db.query<{ name: string }>(sql`select name from users where id = ${userId}`);
  if (!user) return;
  const now = clock.now();
  const actor = actorOf({ userId, name: user.name });
  await db.transaction(async (tx) => {
    for (const organizationId of await organizationIdsOf(tx, userId)) {
      const source = visitorSource(organizationId, actor, visitor);
      await Promise.all([
        tx.query(recordEvent(source, now, { ...draft, resource: userResource(userId) })),
        draft.type === 'user.signed_in' && noteSignIn(tx, organizationId, userId, now),
      ]);
    }
  });
}

function noteSignIn(tx: Tx, organizationId: string, userId: string, now: Date): Promise<number> {
  return tx.execute(sql`
    update members set last_signed_in_at = ${now}
    where organization_id = ${organizationId} and user_id = ${userId}`);
}

const FAILURE_EVERY_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** Records that signing in as a person was tried with a wrong password: at most once a minute and node for each. */
export function createSignInFailureRecorder(platform: { db: Db; clock: Platform['clock'] }) {
  const notedAt = new Map<string, number>();
  return async (email: string, visitor: Visitor): Promise<void> => {
    const now = platform.clock.now().getTime();
    // Asked for an unknown e-mail too, so that what is done does not tell which there are.
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
