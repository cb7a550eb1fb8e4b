// Deletes sessions some days after they ended: as configured by the operator, or sooner if their environment says so.
//
// A session is deleted together with its children, once the last of them has ended (delete-ended.ts), and last the messages, except those
// that forks inherit (kept-transcripts.ts): a session that can still be forked has all of them. The next pass resumes an interrupted one.
// No open session is touched, so no append waits.
//
// Each node deletes its share of the sessions (session-rows/share.ts), so that several do it at once without touching the same rows. A node
// that sees other nodes than the others do, for a moment, may find sessions that another one is deleting, and leaves them.
import sql, { empty, type Sql } from 'sql-template-tag';
import { dropUnusedDrafts, hasOldDrafts } from '../../agents/drafts.ts';
import { areThere } from '../../db/rounds.ts';
import type { Within } from '../../db/shards.ts';
import type { Platform } from '../../platform.ts';
import { allOfIt, isIn, type Share, type ShareNow } from '../../session-rows/share.ts';
import { deleteEndedSessions } from './delete-ended.ts';
import { trimDueTranscripts } from './kept-transcripts.ts';

const DAY_MS = 24 * 3600 * 1000;
// Root sessions at a time. One statement deletes their rows and those of their children.
const BATCH = 200;

type RetentionPlatform = Pick<Platform, 'db' | 'clock' | 'log' | 'metrics'>;

/** A session that has ended; `endedAt` with all digits that the database has. */
interface Ended {
  sessionId: string;
  endedAt: string;
}

interface RetentionRule {
  environment: string;
  /** Null if the environment sets no limit, or was deleted. */
  keepDays: number | null;
}

/**
 * Whether an organization may have sessions, messages or drafts to delete, for rounds through all of them. Of each environment, it looks at
 * the session that ended first. Deleted environments have no limit of their own: `keptDays` applies to them.
 */
export function hasOldSessions(organizationId: Sql, keptDays: number | undefined, now: Date, within: Within): Sql {
  const nextAfter = (name: Sql) => sql`
    select s.environment from sessions s
    where s.organization_id = ${organizationId} and s.ended_at is not null and s.root_session_id is null
      and s.environment > ${name} ${within(sql`s.organization_id`)}
    order by s.environment limit 1`;
  const isDeleted = sql`not exists (
    select 1 from environments x
    where x.organization_id = ${organizationId} and x.name = next.environment ${within(sql`x.organization_id`)})`;
  // The first environment with sessions, and the next after each that exists. Citus refuses a union of the two.
  const ofDeletedEnvironments = sql`${areThere(sql`from (${nextAfter(sql`''`)}) next where ${isDeleted}`)} or ${areThere(sql`
    from environments k cross join lateral (${nextAfter(sql`k.name`)}) next
    where k.organization_id = ${organizationId} ${within(sql`k.organization_id`)} and ${isDeleted}`)}`;
  const ofEnvironments = areThere(sql`
    from environments e
    cross join lateral (
      select s.ended_at from sessions s
      where s.organization_id = e.organization_id and s.environment = e.name and s.ended_at is not null
        and s.root_session_id is null ${within(sql`s.organization_id`)}
      order by s.ended_at limit 1) oldest
    where e.organization_id = ${organizationId} ${within(sql`e.organization_id`)} and oldest.ended_at
      <= ${now}::timestamptz - least(${keptDays ?? null}::integer, e.keep_sessions_days) * interval '24 hours'`);
  const messages = areThere(sql`
    from kept_transcripts k where k.organization_id = ${organizationId} and k.due ${within(sql`k.organization_id`)}`);
  return sql`
    ${ofEnvironments} ${keptDays === undefined ? empty : sql`or ${ofDeletedEnvironments}`} or ${messages}
    or ${hasOldDrafts(organizationId, now, within)}`;
}

/** For one organization. `keptDays`: set by the operator; undefined: only the limits of environments apply. */
export async function dropOldSessions(
  { db, clock, log, metrics }: RetentionPlatform,
  organizationId: string,
  keptDays: number | undefined,
  signal: AbortSignal,
  shareNow: ShareNow = allOfIt,
): Promise<void> {
  for (const { environment, keepDays } of await retentionRules()) {
    const days = Math.min(keptDays ?? Number.POSITIVE_INFINITY, keepDays ?? Number.POSITIVE_INFINITY);
    if (days === Number.POSITIVE_INFINITY) continue;
    const before = new Date(clock.now().getTime() - days * DAY_MS);
    let sessions = 0;
    // Sessions of other shares, and those that are left, are read once and not again for each batch.
    let after: Ended | undefined;
    for (let found = BATCH; found === BATCH && !signal.aborted; ) {
      const ended = await endedBefore(environment, before, await shareNow(), after);
      found = ended.length;
      after = ended.at(-1);
      const ids = ended.map(({ sessionId }) => sessionId);
      if (found > 0) sessions += await deleteEndedSessions({ db, clock }, organizationId, ids, signal);
    }
    metrics.sessionsDropped.inc(sessions);
    if (sessions > 0)
      log.info({ organizationId, environment, days, sessions }, 'deleted sessions at the end of their retention');
  }
  await trimDueTranscripts(db, organizationId, signal, shareNow);
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

  /** Root sessions of the share whose children have all ended, oldest first. */
  function endedBefore(environment: string, before: Date, share: Share, after: Ended | undefined): Promise<Ended[]> {
    return db.query<Ended>(sql`
      select s.session_id as "sessionId", s.ended_at::text as "endedAt" from sessions s
      where s.organization_id = ${organizationId} and s.environment = ${environment} and s.ended_at <= ${before}
        ${after ? sql`and (s.ended_at, s.session_id) > (${after.endedAt}::timestamptz, ${after.sessionId})` : empty}
        and s.root_session_id is null and ${isIn(share)} and not exists (
          select 1 from sessions c where c.organization_id = ${organizationId} and c.root_session_id = s.session_id
            and c.ended_at is null)
      order by s.ended_at, s.session_id limit ${BATCH}`);
  }
}
