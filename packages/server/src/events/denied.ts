// Refused requests in the event log: at most one record a minute for each key or user and error code, across all nodes. A flood of
// them must not fill the log or cost a transaction each, so every node remembers what it has recorded recently.
import type { Route } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { deleteAcross } from '../db/delete-in-batches.ts';
import type { ApiError } from '../lib/api-error.ts';
import type { PoolContext } from '../lib/context.ts';
import type { Platform } from '../platform.ts';
import { recordEvent } from './record.ts';

const EVERY_MS = 60_000;
const MAX_REMEMBERED = 10_000;

export type NoteDenied = (ctx: PoolContext, error: ApiError, route: Route) => Promise<void>;

/** Records the refusal of a known key or person. */
export function createNoteDenied(): NoteDenied {
  const askedAt = new Map<string, number>();
  return async (ctx, error, route) => {
    const now = ctx.clock.now();
    const id = `${ctx.callerId} ${error.code}`;
    if (now.getTime() - (askedAt.get(id) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
    if (askedAt.size >= MAX_REMEMBERED) askedAt.clear();
    askedAt.set(id, now.getTime());
    await ctx.db.transaction(async (tx) => {
      const first = await tx.execute(sql`
        insert into access_denials as d (organization_id, caller_id, code, recorded_at)
        values (${ctx.organizationId}, ${ctx.callerId}, ${error.code}, ${now})
        on conflict (organization_id, caller_id, code) do update set recorded_at = excluded.recorded_at
        where d.recorded_at <= ${new Date(now.getTime() - EVERY_MS)}`);
      if (first === 0) return;
      await tx.query(
        recordEvent(ctx, now, {
          type: 'access.denied',
          outcome: 'denied',
          resource: { type: 'route', id: `${route.method} ${route.path}` },
          changes: { code: [null, error.code] },
        }),
      );
    });
  };
}

/** Forgets refusals that are old enough to be recorded again. */
export function dropAccessDenials({ shards }: Pick<Platform, 'shards'>, now: Date, signal: AbortSignal): Promise<void> {
  const before = new Date(now.getTime() - EVERY_MS);
  return deleteAcross(
    shards,
    'deleting old access denials',
    signal,
    // Compared again, because the refusal may have been recorded since.
    (limit, within) => sql`
      delete from access_denials d using (
        select organization_id, caller_id, code from access_denials
        where recorded_at <= ${before} ${within()} order by recorded_at ${limit}) old
      where d.organization_id = old.organization_id ${within(sql`d.organization_id`)} and d.caller_id = old.caller_id and d.code = old.code
        and d.recorded_at <= ${before}`,
  );
}
