// Interrupting, closing and cancelling sessions.
import type { Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { type EventSource, recordEvent } from '../events/record.ts';
import { foldTail, type Patch, writeTransition } from '../journal/append.ts';
import type { NewChunk } from '../journal/segment.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { deleteFromInbox, readInbox } from '../session-rows/inbox.ts';
import { readOperations } from '../session-rows/operations.ts';
import {
  lockSession,
  requireOpen,
  type SessionRow,
  sessionColumns,
  sessionEvent,
  viewSession,
} from '../session-rows/session.ts';
import { shownText } from '../session-rows/shown-text.ts';
import { endPatch } from '../session-rows/status.ts';
import { insertEntry, type TranscriptEntry } from '../session-rows/transcript.ts';
import { stopChange } from '../turn/stop-turn.ts';
import { inboxChunks } from './inbox-chunks.ts';
import { cancelChildren, interruptTurn, publishStop } from './stop.ts';

/** Requests that the current turn end as `interrupted`; the node that runs it ends it soon after. An idle session stays as it is. */
export async function interruptSession(
  ctx: Context,
  input: Input<'interruptSession'>,
): Promise<Result<'interruptSession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    requireOpen(row);
    // If `stop` is set, the turn is already being stopped.
    if (row.status !== 'idle' && !row.stop) {
      const now = ctx.clock.now();
      await Promise.all([
        interruptTurn(tx, row, { wake: ctx.wake, now }),
        tx.query(recordEvent(ctx, now, { type: 'session.interrupted', ...sessionEvent(row) })),
      ]);
    }
    return { session: viewSession(row) };
  });
}

/** Completes an idle session at once; a busy one after its current turn and the turns of its queued messages. */
export async function closeSession(ctx: Context, input: Input<'closeSession'>): Promise<Result<'closeSession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (row.status === 'completed') return { session: viewSession(row) };
    requireOpen(row);
    if (row.status === 'idle') {
      return { session: viewSession(await endSession(tx, ctx, row, 'completed', [])) };
    }
    if (!row.closing) {
      await Promise.all([
        tx.query(sql`
          update sessions set closing = true
          where organization_id = ${row.organizationId} and session_id = ${row.sessionId}`),
        tx.query(recordEvent(ctx, ctx.clock.now(), { type: 'session.closing', ...sessionEvent(row) })),
      ]);
    }
    return { session: viewSession(row) };
  });
}

/**
 * Cancels at once, also while a node runs the session: the epoch is raised, so further writes of that node are refused. A tool
 * call that is running may still have its effect; its result is not awaited, and its outcome is unknown.
 */
export async function cancelSession(ctx: Context, input: Input<'cancelSession'>): Promise<Result<'cancelSession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (row.status === 'cancelled') return { session: viewSession(row) };
    requireOpen(row);
    return { session: viewSession(await cancelNow(tx, ctx, row)) };
  });
}

/** Cancels a session whose row the caller has locked. `expired`: the chunks of expired approvals, if they are the reason. */
export async function cancelNow(
  tx: Tx,
  ctx: SessionWriter,
  row: SessionRow,
  expired: readonly NewChunk[] = [],
): Promise<SessionRow> {
  const now = ctx.clock.now();
  await foldTail(ctx, tx, row, now);
  const came = await takeFromInbox(tx, row);
  const stopped = row.status === 'idle' ? undefined : await cancelTurn(tx, ctx, row, now);
  const [children] = await Promise.all([
    tx.query<{ sessionId: string }>(cancelChildren(row, now)),
    ...(stopped?.statements ?? []).map((statement) => tx.query(statement)),
  ]);
  const chunks = [...came, ...expired, ...(stopped?.items ?? [])];
  const ended = await endSession(tx, ctx, row, 'cancelled', chunks, stopped?.patch);
  tx.afterCommit(() => {
    ctx.wake.publish('inbox', row);
    publishStop(
      ctx.wake,
      row.organizationId,
      children.map(({ sessionId }) => sessionId),
    );
  });
  return ended;
}

/** The locked session and all its descendants; those that are open are cancelled. Parents come before children. */
export async function cancelFamily(tx: Tx, ctx: SessionWriter, row: SessionRow): Promise<SessionRow[]> {
  const family = await lockFamily(tx, row);
  // Deepest first, because cancelling a session also changes the rows of its children.
  for (const one of family.toReversed()) if (!one.endedAt) await cancelNow(tx, ctx, one);
  return family;
}

/** The locked session and all its descendants, which are locked here; parents come before children. */
async function lockFamily(tx: Tx, row: SessionRow): Promise<SessionRow[]> {
  const family = [row];
  for (let parents = [row.sessionId]; parents.length > 0; ) {
    const children = await tx.query<SessionRow>(sql`
      select ${sessionColumns} from sessions s
      where s.organization_id = ${row.organizationId} and s.parent_session_id = any(${parents}::uuid[])
      order by s.session_id for no key update`);
    family.push(...children);
    parents = children.map(({ sessionId }) => sessionId);
  }
  return family;
}

/** Cancels the current turn at once, without waiting for running tools. */
async function cancelTurn(tx: Tx, ctx: SessionWriter, row: SessionRow, now: Date) {
  const { organizationId, sessionId, turn } = row;
  const [operations, transcript] = await Promise.all([
    readOperations(tx, organizationId, sessionId, turn),
    tx.query<Pick<TranscriptEntry, 'role' | 'content'>>(sql`
      select role, content from messages
      where organization_id = ${organizationId} and session_id = ${sessionId} and turn = ${turn} order by position`),
  ]);
  const unanswered = operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
  const shown = unanswered ? await shownText(tx, row, unanswered) : '';
  const { entries, ...change } = stopChange(
    row,
    { operations, transcript, shownText: shown },
    new Map(),
    'cancelled',
    ctx,
    now,
  );
  const stored = entries.map((entry, index) => {
    const position = transcript.length + index;
    return insertEntry(row, { turn, position, messageId: newUuid(), ...entry, createdAt: now });
  });
  return { ...change, statements: [...change.statements, ...stored] };
}

/** Shows the acknowledged decisions and results that the node had not shown yet; after the cancel it can't. */
async function takeFromInbox(tx: Tx, row: SessionRow): Promise<NewChunk[]> {
  if (row.inbox === 0) return [];
  const { organizationId, sessionId } = row;
  const entries = (await readInbox(tx, organizationId, sessionId)).filter(({ kind }) => kind !== 'message');
  if (entries.length === 0) return [];
  const [operations] = await Promise.all([
    readOperations(tx, organizationId, sessionId, row.turn),
    tx.query(deleteFromInbox(row, entries)),
    tx.query(sql`
      update sessions set inbox = inbox - ${entries.length}
      where organization_id = ${organizationId} and session_id = ${sessionId}`),
  ]);
  return inboxChunks(entries, operations);
}

/** The caller of an API request, or the service itself. */
export type SessionWriter = EventSource & Pick<Platform, 'clock' | 'wake' | 'live' | 'metrics' | 'analytics'>;

async function endSession(
  tx: Tx,
  ctx: SessionWriter,
  row: SessionRow,
  status: 'completed' | 'cancelled',
  chunksBefore: NewChunk[],
  patch: Patch = [],
): Promise<SessionRow> {
  const now = ctx.clock.now();
  const head = { ...row };
  const ended: SessionRow = { ...row, status, waitingFor: null, endedAt: now, updatedAt: now, nodeId: null };
  const items: NewChunk[] = [...chunksBefore, { type: 'session.status', status, waitingFor: null }];
  await writeTransition(ctx, tx, head, {
    runs: [{ turn: row.turn, items }],
    patch: [...patch, sql`status = ${status}`, sql`epoch = epoch + 1`, sql`node_id = null`, ...endPatch(row, now)],
    statements: [recordEvent(ctx, now, { type: `session.${status}`, ...sessionEvent(row) })],
    now,
  });
  tx.afterCommit(() => {
    ctx.analytics.count(row, status === 'completed' ? 'sessionsCompleted' : 'sessionsCancelled');
    if (row.parentSessionId) ctx.wake.publish('child', row);
  });
  return { ...ended, nextSeq: row.nextSeq + items.length };
}
