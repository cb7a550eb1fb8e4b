// Deletes sessions some days after they ended: as configured by the operator, or sooner if their environment says so.
//
// A session is deleted together with its children, once the last of them has ended. Their segments, operations and deliveries go first,
// a thousand rows a statement, then the session rows, and last the messages, except those that forks inherit (kept-transcripts.ts): a
// session that can still be forked has all of them. No statement is long, and the next pass resumes an interrupted one. No open session
// is touched, so no append waits. Two nodes may do it at the same time.
import type { Session } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { forgetHolders } from '../files/retention.ts';
import type { Platform } from '../platform.ts';
import { releaseTranscripts, trimDueTranscripts } from './kept-transcripts.ts';
import { deletePairs } from './metadata.ts';

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
      if (found > 0) sessions += await drop(ended);
    }
    metrics.sessionsDropped.inc(sessions);
    if (sessions > 0)
      log.info({ organizationId, environment, days, sessions }, 'deleted sessions at the end of their retention');
  }
  await trimDueTranscripts(db, organizationId, signal);

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

  /** Returns how many sessions were deleted, including children. */
  async function drop(roots: string[]): Promise<number> {
    const rows = await db.query<{ sessionId: string }>(sql`
      select s.session_id as "sessionId" from sessions s
      where s.organization_id = ${organizationId} and s.root_session_id = any(${roots}::uuid[])`);
    const ids = [...roots, ...rows.map(({ sessionId }) => sessionId)];
    await deleteInBatches(
      db,
      signal,
      (limit) => sql`
        delete from segments g using (
          select x.session_id, x.turn, x.seq_to from segments x
          where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}) old
        where g.organization_id = ${organizationId} and g.session_id = old.session_id and g.turn = old.turn
          and g.seq_to = old.seq_to`,
    );
    await deleteInBatches(
      db,
      signal,
      (limit) => sql`
        delete from operations o using (
          select x.operation_id from operations x
          where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}) old
        where o.organization_id = ${organizationId} and o.operation_id = old.operation_id`,
    );
    await deleteInBatches(
      db,
      signal,
      (limit) => sql`
        delete from webhook_deliveries d using (
          select x.webhook_subscription_id, x.delivery_id from webhook_deliveries x
          where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}) old
        where d.organization_id = ${organizationId} and d.webhook_subscription_id = old.webhook_subscription_id
          and d.delivery_id = old.delivery_id`,
    );
    if (signal.aborted) return 0;
    // The foreign key deletes the session's approvals, of which there are few.
    return db.transaction(async (tx) => {
      const rows = await tx.query<{ sessionId: string; metadata: Session['metadata'] }>(sql`
        select session_id as "sessionId", metadata from sessions
        where organization_id = ${organizationId} and session_id = any(${ids}::uuid[]) and ended_at is not null
        order by session_id for update`);
      const deleted = rows.map(({ sessionId }) => sessionId);
      await releaseTranscripts(tx, organizationId, deleted);
      await forgetHolders(tx, organizationId, deleted, clock.now());
      for (const statement of deletePairs(organizationId, rows)) tx.write(statement);
      tx.write(sql`
        delete from received_webhooks
        where organization_id = ${organizationId} and session_id = any(${ids}::uuid[])`);
      tx.write(sql`
        delete from pending_deliveries d using sessions s
        where d.organization_id = ${organizationId} and s.organization_id = ${organizationId}
          and s.session_id = any(${ids}::uuid[]) and d.webhook_subscription_id = s.delivery_subscription_id
          and d.delivery_id = s.delivery_id`);
      return tx.execute(sql`
        delete from sessions
        where organization_id = ${organizationId} and session_id = any(${deleted}::uuid[])`);
    });
  }
}
