// Erases end users: everything that belongs to them, in the order in which it could come back.
//
//   1. schedules          they would open sessions
//   2. sessions           fifty families at a time: open ones are cancelled, then all are deleted (sessions/retention/delete-ended.ts)
//   3. messages           of origins whose forks are gone as well (sessions/retention/kept-transcripts.ts)
//   4. usage              the sums stay, without the id
//   5. uploads            with session tokens that no message names; others do not name the end user any more
//   6. bytes of files     from their store
//   7. stored responses   of requests with an Idempotency-Key
//   8. the id itself      end_user_erasures keeps a pseudonym, and the event log gets a record
//
// Each step deletes what it finds and does nothing if there is nothing, so a pass that is interrupted is repeated from the beginning, by
// any node. Two nodes may do it at the same time: counts are added in the transactions that delete, and the last step takes effect once.
// Cancelling locks one family of sessions at a time, and nothing else here locks an open session, so no other append waits.
import sql from 'sql-template-tag';
import { recordEvent, systemSource } from '../events/record.ts';
import { purgeFilesOf } from '../files/purge.ts';
import { eraseUploads, forgetHolders } from '../files/retention.ts';
import { eraseResponses } from '../idempotency/erase-responses.ts';
import type { Platform } from '../platform.ts';
import { type SessionRow, sessionColumns } from '../session-rows/session.ts';
import { cancelFamily, type SessionWriter } from '../sessions/end-session.ts';
import { deleteEndedSessions } from '../sessions/retention/delete-ended.ts';
import { trimDueTranscripts } from '../sessions/retention/kept-transcripts.ts';
import { eraseUsage } from '../usage/erase.ts';

export type ErasurePlatform = Pick<
  Platform,
  'db' | 'clock' | 'log' | 'metrics' | 'analytics' | 'wake' | 'live' | 'files' | 'shards'
>;

/** An erasure that has not finished. */
interface RunningErasure {
  pseudonym: Buffer;
  endUserId: string;
}

/** Families of sessions: few enough that a pass shows progress, enough that one look-up serves many. */
const BATCH = 50;

export async function organizationsWithErasures({ shards }: Pick<Platform, 'shards'>): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for end users to erase',
    (within) => sql`
    select distinct organization_id as "organizationId" from end_user_erasures
    where end_user_id is not null ${within()} limit 1000`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

/** Continues the erasures of an organization, oldest first, to their end. */
export async function eraseEndUsers(
  platform: ErasurePlatform,
  organizationId: string,
  signal: AbortSignal,
): Promise<void> {
  const running = await platform.db.query<RunningErasure>(sql`
    select e.pseudonym, e.end_user_id as "endUserId" from end_user_erasures e
    where e.organization_id = ${organizationId} and e.end_user_id is not null order by e.started_at limit 1000`);
  for (const erasure of running) {
    if (signal.aborted) return;
    await erase(platform, organizationId, erasure, signal);
  }
}

async function erase(
  platform: ErasurePlatform,
  organizationId: string,
  erasure: RunningErasure,
  signal: AbortSignal,
): Promise<void> {
  const { db, clock, log, metrics } = platform;
  const { pseudonym, endUserId } = erasure;
  const writer: SessionWriter = { ...systemSource(organizationId), ...platform };

  await deleteSchedules();
  for (;;) {
    if (signal.aborted) return;
    const roots = await rootSessions();
    if (roots.length === 0) break;
    for (const sessionId of roots) await cancel(sessionId);
    const sessions = await deleteEndedSessions(platform, organizationId, roots, signal, {
      alsoUploaded: true,
      record: (tx, deleted) =>
        tx.query(sql`
          update end_user_erasures set sessions = sessions + ${deleted.sessions}, files = files + ${deleted.files}
          where organization_id = ${organizationId} and pseudonym = ${pseudonym} and end_user_id is not null`),
    });
    metrics.sessionsErased.inc(sessions);
    // Another node may have deleted them. The next pass looks again.
    if (sessions === 0) return;
  }
  await trimDueTranscripts(db, organizationId, signal);
  await eraseUsage(db, organizationId, endUserId, signal);
  await deleteUploads();
  await purgeFilesOf(platform, organizationId, signal);
  await eraseResponses(db, organizationId, endUserId, signal);
  if (!signal.aborted) await finish();

  async function deleteSchedules(): Promise<void> {
    await db.transaction(async (tx) => {
      const schedules = await tx.query<{ scheduleId: string }>(sql`
        select s.schedule_id as "scheduleId" from schedules s
        where s.organization_id = ${organizationId} and s.end_user->>'id' = ${endUserId}
        order by s.schedule_id for update`);
      if (schedules.length === 0) return;
      const ids = schedules.map(({ scheduleId }) => scheduleId);
      const files = await forgetHolders(tx, organizationId, ids, clock.now(), { alsoUploaded: true });
      await Promise.all([
        tx.query(sql`
          delete from schedules where organization_id = ${organizationId} and schedule_id = any(${ids}::uuid[])`),
        tx.query(sql`
          update end_user_erasures set schedules = schedules + ${ids.length}, files = files + ${files}
          where organization_id = ${organizationId} and pseudonym = ${pseudonym}`),
      ]);
    });
  }

  async function deleteUploads(): Promise<void> {
    await db.transaction(async (tx) => {
      const files = await eraseUploads(tx, organizationId, endUserId, clock.now());
      await tx.query(sql`
        update end_user_erasures set files = files + ${files}
        where organization_id = ${organizationId} and pseudonym = ${pseudonym} and end_user_id is not null`);
    });
  }

  async function rootSessions(): Promise<string[]> {
    const rows = await db.query<{ rootId: string }>(sql`
      select distinct coalesce(s.root_session_id, s.session_id) as "rootId" from (
        select u.session_id from session_end_users u
        where u.organization_id = ${organizationId} and u.end_user_id = ${endUserId}
        order by u.session_id limit ${BATCH}) found
      join sessions s on s.organization_id = ${organizationId} and s.session_id = found.session_id`);
    return rows.map(({ rootId }) => rootId).toSorted();
  }

  /** The session and its children, unless all have ended, or another node deleted them. */
  async function cancel(sessionId: string): Promise<void> {
    await db.transaction(async (tx) => {
      const [row] = await tx.query<SessionRow>(sql`
        select ${sessionColumns} from sessions s
        where s.organization_id = ${organizationId} and s.session_id = ${sessionId} for no key update`);
      if (row) await cancelFamily(tx, writer, row);
    });
  }

  async function finish(): Promise<void> {
    await db.transaction(async (tx) => {
      const now = clock.now();
      const [finished] = await tx.query<{ sessions: number; files: number; schedules: number }>(sql`
        update end_user_erasures set end_user_id = null, finished_at = ${now}
        where organization_id = ${organizationId} and pseudonym = ${pseudonym} and end_user_id = ${endUserId}
        returning end_user_erasures.sessions, end_user_erasures.files, end_user_erasures.schedules`);
      if (!finished) return;
      const { sessions, files, schedules } = finished;
      await tx.query(
        recordEvent(systemSource(organizationId), now, {
          type: 'end_user.erased',
          resource: { type: 'end_user', id: pseudonym.toString('hex') },
          changes: { sessions: [null, sessions], files: [null, files], schedules: [null, schedules] },
        }),
      );
      log.info({ organizationId, sessions, files, schedules }, 'erased an end user');
    });
  }
}
