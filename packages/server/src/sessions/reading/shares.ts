// Share links: anyone who has one can read the conversation of one session, and nothing else. Reading by a link is in shared.ts.
import type { Input, Result, SessionShare } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import { deleteAcross } from '../../db/delete-in-batches.ts';
import { recordEvent } from '../../events/record.ts';
import { hashSecret, newSecret } from '../../keys/secret.ts';
import { ApiError, invalidField, notFound } from '../../lib/api-error.ts';
import { type Actor, type Context, inTransaction } from '../../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../../lib/ids.ts';
import { instantOf } from '../../lib/instant.ts';
import { pageOf, pageRequest } from '../../lib/page.ts';
import type { Platform } from '../../platform.ts';
import { lockSession, readSession, sessionEvent } from '../../session-rows/session.ts';

const DAY_MS = 24 * 3600_000;
// Links are passed on and forgotten: they end by themselves.
const DEFAULT_MS = 7 * DAY_MS;
const MAX_MS = 366 * DAY_MS;
/** The limit of one session: more than that is a program that never reuses one. */
const MAX_SHARES = 50;

interface Row {
  shareId: string;
  sessionId: string;
  title: string | null;
  includesTools: boolean;
  createdBy: Actor;
  expiresAt: Date;
  createdAt: Date;
}

/** 400 unless it expires within a year, 409 `conflict` if the session has 50 links. */
export async function createSessionShare(
  ctx: Context,
  input: Input<'createSessionShare'>,
): Promise<Result<'createSessionShare'>> {
  const { organizationId, actor } = ctx;
  const now = ctx.clock.now();
  const expiresAt = input.expiresAt ? instantOf(input.expiresAt, 'expiresAt') : new Date(now.getTime() + DEFAULT_MS);
  if (expiresAt <= now || expiresAt.getTime() > now.getTime() + MAX_MS) {
    throw invalidField('expiresAt', 'must be in the future, and within a year');
  }
  const row: Row & { token: string } = await inTransaction(ctx, async (tx, ctx) => {
    const session = await lockSession(tx, organizationId, uuidOf('ses', input.sessionId));
    const { sessionId } = session;
    const [found] = await tx.query<{ shares: number }>(sql`
      select count(*)::integer as shares from session_shares
      where organization_id = ${organizationId} and session_id = ${sessionId} and expires_at > ${now}`);
    if (found!.shares >= MAX_SHARES) {
      throw new ApiError('conflict', `The session has ${MAX_SHARES} share links. Revoke some of them first.`);
    }
    const shareId = newUuid();
    const token = newSecret(organizationId, shareId, 'sbs');
    const { title = null, includesTools = false } = input;
    await tx.execute(sql`
      insert into session_shares (organization_id, share_id, session_id, token_hash, title, includes_tools, created_by,
        expires_at, created_at)
      values (${organizationId}, ${shareId}, ${sessionId}, ${hashSecret(token)}, ${title}, ${includesTools},
        ${JSON.stringify(actor)}, ${expiresAt}, ${now})`);
    await tx.query(
      recordEvent(ctx, now, {
        type: 'session.shared',
        ...sessionEvent(session),
        changes: {
          shareId: [null, formatId('shr', shareId)],
          includesTools: [null, includesTools],
          expiresAt: [null, expiresAt.toISOString()],
        },
      }),
    );
    return { shareId, sessionId, title, includesTools, createdBy: actor, expiresAt, createdAt: now, token };
  });
  // The token is in the fragment, which is not sent to servers and so is in no log of a proxy.
  return { share: shareFromRow(row), link: `${ctx.publicUrl().origin}/console/share#${row.token}` };
}

export async function listSessionShares(
  ctx: Context,
  input: Input<'listSessionShares'>,
): Promise<Result<'listSessionShares'>> {
  const { organizationId } = ctx;
  const request = pageRequest(`shares:${organizationId}:${input.sessionId}`, input);
  const { sessionId } = await readSession(ctx.db, organizationId, uuidOf('ses', input.sessionId));
  const rows = await ctx.db.query<Row>(sql`
    select share_id as "shareId", session_id as "sessionId", title, includes_tools as "includesTools",
      created_by as "createdBy", expires_at as "expiresAt", created_at as "createdAt"
    from session_shares
    where organization_id = ${organizationId} and session_id = ${sessionId} and expires_at > ${ctx.clock.now()}
      ${request.after === undefined ? empty : sql`and share_id < ${request.after}`}
    order by share_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.shareId, shareFromRow);
}

/** The link is invalid from then on. */
export async function deleteSessionShare(
  ctx: Context,
  input: Input<'deleteSessionShare'>,
): Promise<Result<'deleteSessionShare'>> {
  const { organizationId } = ctx;
  await inTransaction(ctx, async (tx, ctx) => {
    const session = await readSession(tx, organizationId, uuidOf('ses', input.sessionId));
    const deleted = await tx.execute(sql`
      delete from session_shares
      where organization_id = ${organizationId} and share_id = ${uuidOf('shr', input.shareId)}
        and session_id = ${session.sessionId}`);
    if (deleted === 0) throw notFound('share link');
    await tx.query(
      recordEvent(ctx, ctx.clock.now(), {
        type: 'session.share_revoked',
        ...sessionEvent(session),
        changes: { shareId: [input.shareId, null] },
      }),
    );
  });
  return { shareId: input.shareId, deleted: true };
}

/** Expired links are already invalid; this frees their space. */
export async function dropExpiredShares(
  { shards }: Pick<Platform, 'shards'>,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  await deleteAcross(
    shards,
    'deleting expired share links',
    signal,
    (limit, within) => sql`
      delete from session_shares h using (
        select organization_id, share_id from session_shares
        where expires_at <= ${now} ${within()} order by expires_at ${limit}) old
      where h.organization_id = old.organization_id ${within(sql`h.organization_id`)} and h.share_id = old.share_id`,
  );
}

function shareFromRow(row: Row): SessionShare {
  return {
    shareId: formatId('shr', row.shareId),
    sessionId: formatId('ses', row.sessionId),
    title: row.title,
    includesTools: row.includesTools,
    createdBy: row.createdBy.name,
    expiresAt: row.expiresAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
  };
}
