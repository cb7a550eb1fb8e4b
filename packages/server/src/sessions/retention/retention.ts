// Deletes sessions some days after they ended: as configured by the operator, or sooner if their environment says so.
//
// A session is deleted together with its children, once the last of them has ended (delete-ended.ts), and last the messages, except those
// that forks inherit (kept-transcripts.ts): a session that can still be forked has all of them. The next pass resumes an interrupted one.
// No open session is touched, so no append waits. Two nodes may do it at the same time.
import sql from 'sql-template-tag';
import { dropUnusedDrafts } from '../../agents/drafts.ts';
import type { Platform } from '../../platform.ts';
import { deleteEndedSessions } from './delete-ended.ts';
import { trimDueTranscripts } from './kept-transcripts.ts';

const DAY_MS = 24 * 3600 * 1000;
// Root sessions at a time. One statement deletes their rows and those of their children.
const BATCH = 200;

type RetentionPlatform = Pick<Platform, 'db' | 'clock' | 'log' | 'metrics'>;

interface RetentionRule {
  environment: string;
  /** Null if the environment sets no limit, or was deleted. */
  keepDays: number | null;
}

/** For one organization. `keptDays`: set by the operator; undefined: only the limits of environments apply. */
export async function dropOldSessions(
  { db, clock, log, metrics }: RetentionPlatform,
  organizationId: string,
  keptDays: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  for (const { environment, keepDays } of await retentionRules()) {
    const days = Math.min(keptDays ?? Number.POSITIVE_INFINITY, keepDays ?? Number.POSITIVE_INFINITY);
    if (days === Number.POSITIVE_INFINITY) continue;
    const before = new Date(clock.now().getTime() - days * DAY_MS);
    let sessions = 0;
    for (let found = BATCH; found === BATCH && !signal.aborted; ) {
      const ended = await endedBefore(environment, before);
      found = ended.length;
      if (found > 0) sessions += await deleteEndedSessions({ db, clock }, organizationId, ended, signal);
    }
    metrics.sessionsDropped.inc(sessions);
    if (sessions > 0)
      log.info({ organizationId, environment, days, sessions }, 'deleted sessions at the end of their retention');
  }
  await trimDueTranscripts(db, organizationId, signal);
  await dropUnusedDrafts(db, organizationId, clock.now(), signal);

  /** The environments that have ended sessions, including deleted environments: one index look-up for each. */
  function retentionRules(): Promise<RetentionRule[]> {
    return db.query<RetentionRule>(sql`
      with recursive found as (
        (select s.environment from sessions s
        where s.organization_id = ${organizationId} and s.ended_at is not null and s.root_session_id is null
        order by s.environment limit 1)
        union all
        select (
          select s.environment from sessions s
          where s.organization_id = ${organizationId} and s.ended_at is not null and s.root_session_id is null
            and s.environment > found.environment
          order by s.environment limit 1)
        from found where found.environment is not null)
      select found.environment, e.keep_sessions_days as "keepDays" from found
      left join environments e on e.organization_id = ${organizationId} and e.name = found.environment
      where found.environment is not null`);
  }

  /** Root sessions whose children have all ended, oldest first. */
  async function endedBefore(environment: string, before: Date): Promise<string[]> {
    const rows = await db.query<{ sessionId: string }>(sql`
      select s.session_id as "sessionId" from sessions s
      where s.organization_id = ${organizationId} and s.environment = ${environment} and s.ended_at <= ${before}
        and s.root_session_id is null and not exists (
          select 1 from sessions c where c.organization_id = ${organizationId} and c.root_session_id = s.session_id
            and c.ended_at is null)
      order by s.ended_at limit ${BATCH}`);
    return rows.map(({ sessionId }) => sessionId);
  }
}
