// End users: what there is of one, and the request to erase it. erase.ts does the work.
import type { EndUserDetails, Erasure, Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import type { Platform } from '../platform.ts';
import { pseudonymOf, pseudonymsOf } from '../vault/pseudonym.ts';

interface ErasureRow {
  isRunning: boolean;
  sessions: number;
  files: number;
  schedules: number;
  startedAt: Date;
  finishedAt: Date | null;
}

export async function getEndUser(ctx: Context, { endUserId }: Input<'getEndUser'>): Promise<Result<'getEndUser'>> {
  return { endUser: await detailsOf(ctx, ctx.db, ctx.organizationId, endUserId) };
}

/**
 * Begins to erase an end user; without effect while an erasure of it is running. From the commit on, no session is opened for the end
 * user until the erasure has finished.
 */
export async function eraseEndUser(ctx: Context, input: Input<'eraseEndUser'>): Promise<Result<'eraseEndUser'>> {
  const { organizationId, vault } = ctx;
  const { endUserId } = input;
  return inTransaction(ctx, async (tx, ctx) => {
    // Waits for the sessions that are being opened; those that follow see the erasure (sessions/end-users.ts).
    await tx.query(sql`
      select 1 from environments where organization_id = ${organizationId} order by name for update`);
    const before = await latestErasure(ctx, tx, organizationId, endUserId);
    if (!before?.isRunning) {
      const now = ctx.clock.now();
      const pseudonym = pseudonymOf(vault, organizationId, endUserId);
      await Promise.all([
        tx.query(sql`
          insert into end_user_erasures (organization_id, pseudonym, end_user_id, sessions, files, schedules, requested_by,
            started_at)
          values (${organizationId}, ${pseudonym}, ${endUserId}, 0, 0, 0, ${JSON.stringify(ctx.actor)}, ${now})
          on conflict (organization_id, pseudonym) do update set end_user_id = excluded.end_user_id, sessions = 0, files = 0,
            schedules = 0, requested_by = excluded.requested_by, started_at = excluded.started_at, finished_at = null`),
        tx.query(
          recordEvent(ctx, now, {
            type: 'end_user.erasure_started',
            resource: { type: 'end_user', id: pseudonym.toString('hex') },
          }),
        ),
      ]);
    }
    return { endUser: await detailsOf(ctx, tx, organizationId, endUserId) };
  });
}

async function detailsOf(
  platform: Pick<Platform, 'vault'>,
  db: Queryable,
  organizationId: string,
  endUserId: string,
): Promise<EndUserDetails> {
  const [erasure, sessions] = await Promise.all([
    latestErasure(platform, db, organizationId, endUserId),
    db.execute(sql`
      select 1 from session_end_users where organization_id = ${organizationId} and end_user_id = ${endUserId} limit 1`),
  ]);
  return { endUserId, hasSessions: sessions > 0, erasure: erasure ? viewErasure(erasure) : null };
}

async function latestErasure(
  { vault }: Pick<Platform, 'vault'>,
  db: Queryable,
  organizationId: string,
  endUserId: string,
): Promise<ErasureRow | undefined> {
  const [row] = await db.query<ErasureRow>(sql`
    select e.end_user_id is not null as "isRunning", e.sessions, e.files, e.schedules, e.started_at as "startedAt",
      e.finished_at as "finishedAt"
    from end_user_erasures e
    where e.organization_id = ${organizationId}
      and (e.pseudonym = any(${pseudonymsOf(vault, organizationId, endUserId)}::bytea[]) or e.end_user_id = ${endUserId})
    order by e.started_at desc limit 1`);
  return row;
}

function viewErasure(row: ErasureRow): Erasure {
  return {
    status: row.isRunning ? 'running' : 'finished',
    deletedSessions: row.sessions,
    deletedFiles: row.files,
    deletedSchedules: row.schedules,
    startedAt: row.startedAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
  };
}
