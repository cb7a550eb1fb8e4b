// Sessions (api.md section 5): opening, reading, closing, cancelling.
import type { Input, Result } from '@signalbox/contract';
import sql, { empty, join } from 'sql-template-tag';
import { currentVersion } from '../agents/agents.ts';
import { cancelApprovals } from '../approvals/approvals.ts';
import type { Tx } from '../db/db.ts';
import { holdEnvironment } from '../environments/environments.ts';
import { recordEvent } from '../events/record.ts';
import { insertSegment, writeTransition } from '../journal/append.ts';
import { beginning } from '../journal/cursor.ts';
import { encodeItems, type NewChunk, type Segment } from '../journal/segment.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import {
  lockSession,
  readSession,
  requireOpen,
  type SessionRow,
  sessionColumns,
  sessionEvent,
  viewSession,
} from './session.ts';
import { partsOf } from './transcript.ts';
import { beginTurn } from './turns.ts';

/**
 * Opens a Session; with `input` its first turn begins in the same transaction. 404 for an unknown Agent, version or
 * Environment, 409 `agent_archived`, 422 `budget_invalid`.
 */
export async function openSession(ctx: Context, input: Input<'openSession'>): Promise<Result<'openSession'>> {
  const { organizationId } = ctx;
  const agentId = uuidOf('agt', input.agentId);
  if (input.budget?.maxCostUsd !== undefined) {
    throw new ApiError('budget_invalid', 'budget.maxCostUsd: no price is configured for the model of this agent.', {
      errors: [{ path: 'budget.maxCostUsd', message: 'needs a price for the model' }],
    });
  }
  return inTransaction(ctx, async (tx) => {
    const [newest] = await Promise.all([
      currentVersion(tx, organizationId, agentId),
      holdEnvironment(tx, organizationId, input.environment),
      input.agentVersion === undefined ? undefined : requireVersion(tx, organizationId, agentId, input.agentVersion),
    ]);
    const now = ctx.clock.now();
    const owner = { organizationId, sessionId: newUuid() };
    const version = input.agentVersion ?? newest;
    const begun =
      input.input === undefined
        ? undefined
        : beginTurn(owner, 1, { messageId: newUuid(), content: partsOf(input.input) }, version, now);
    const segment: Segment | undefined = begun && {
      turn: 1,
      seqFrom: 1,
      seqTo: begun.run.items.length,
      body: encodeItems(begun.run.items),
      createdAt: now,
    };
    const row: SessionRow = {
      ...owner,
      agentId,
      pinnedVersion: input.agentVersion ?? null,
      agentVersion: begun ? version : null,
      environment: input.environment,
      status: begun ? 'running' : 'idle',
      waitingFor: null,
      stopReason: null,
      turn: begun ? 1 : 0,
      nextSeq: segment ? segment.seqTo + 1 : 1,
      epoch: 0,
      workerId: null,
      inbox: 0,
      closing: false,
      closeOnIdle: input.closeOnIdle ?? false,
      budget: input.budget ?? null,
      error: null,
      metadata: input.metadata ?? {},
      inputTokens: 0,
      outputTokens: 0,
      cachedTokens: 0,
      steps: 0,
      toolCalls: 0,
      modelCalls: 0,
      createdAt: now,
      updatedAt: now,
      endedAt: null,
    };
    await Promise.all([
      tx.query(sql`
        insert into sessions (organization_id, session_id, agent_id, pinned_version, agent_version, environment, status,
          turn, next_seq, runnable_at, close_on_idle, budget, metadata, delivery_due, created_at, updated_at)
        values (${organizationId}, ${row.sessionId}, ${agentId}, ${row.pinnedVersion}, ${row.agentVersion},
          ${row.environment}, ${row.status}, ${row.turn}, ${row.nextSeq}, ${now}, ${row.closeOnIdle},
          ${row.budget && JSON.stringify(row.budget)}, ${JSON.stringify(row.metadata)}, ${segment !== undefined}, ${now},
          ${now})`),
      ...(begun?.statements ?? []).map((statement) => tx.query(statement)),
      ...(segment ? [tx.query(insertSegment(owner, segment))] : []),
      tx.query(recordEvent(ctx, now, { type: 'session.created', ...sessionEvent(row) })),
    ]);
    tx.afterCommit(() => {
      if (!segment) return;
      ctx.live.committed(row.sessionId, beginning, [segment]);
      ctx.wake.publish('journal', row.sessionId);
      ctx.wake.publish('runnable', row.sessionId);
    });
    return { session: viewSession(row) };
  });
}

/** Newest first. */
export async function listSessions(ctx: Context, input: Input<'listSessions'>): Promise<Result<'listSessions'>> {
  const request = pageRequest(`sessions:${ctx.organizationId}`, input);
  const metadata = Object.entries(input.metadata ?? {}).map(([key, value]) => sql`and s.metadata->>${key} = ${value}`);
  const rows = await ctx.db.query<SessionRow>(sql`
    select ${sessionColumns} from sessions s where s.organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and s.session_id < ${request.after}`}
      ${input.status === undefined ? empty : sql`and s.status = ${input.status}`}
      ${input.agentId === undefined ? empty : sql`and s.agent_id = ${uuidOf('agt', input.agentId)}`}
      ${input.environment === undefined ? empty : sql`and s.environment = ${input.environment}`}
      ${metadata.length === 0 ? empty : join(metadata, ' ')}
    order by s.session_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.sessionId, viewSession);
}

export async function getSession(ctx: Context, input: Input<'getSession'>): Promise<Result<'getSession'>> {
  return { session: viewSession(await readSession(ctx.db, ctx.organizationId, uuidOf('ses', input.sessionId))) };
}

/** Metadata may change at any time, also after the end. */
export async function updateSession(ctx: Context, input: Input<'updateSession'>): Promise<Result<'updateSession'>> {
  return inTransaction(ctx, async (tx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (input.metadata === undefined) return { session: viewSession(row) };
    const now = ctx.clock.now();
    await Promise.all([
      tx.query(sql`
        update sessions set metadata = ${JSON.stringify(input.metadata)}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and session_id = ${row.sessionId}`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'session.updated',
          ...sessionEvent(row),
          changes: { metadata: [row.metadata, input.metadata] },
        }),
      ),
    ]);
    return { session: viewSession({ ...row, metadata: input.metadata, updatedAt: now }) };
  });
}

/** 409 `conflict` while it is open. What is still to be delivered of it is not delivered any more. */
export async function deleteSession(ctx: Context, input: Input<'deleteSession'>): Promise<Result<'deleteSession'>> {
  return inTransaction(ctx, async (tx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (!row.endedAt) throw new ApiError('conflict', `The session is ${row.status}. Close or cancel it first.`);
    const { organizationId, sessionId } = row;
    await Promise.all([
      tx.query(sql`delete from segments where organization_id = ${organizationId} and session_id = ${sessionId}`),
      tx.query(sql`
        delete from webhook_deliveries where organization_id = ${organizationId} and session_id = ${sessionId}`),
      tx.query(sql`delete from sessions where organization_id = ${organizationId} and session_id = ${sessionId}`),
      tx.query(recordEvent(ctx, ctx.clock.now(), { type: 'session.deleted', ...sessionEvent(row) })),
    ]);
    return { sessionId: input.sessionId, deleted: true };
  });
}

/** Completes an idle Session now, another when its turn is over and what was queued before has had its turn. */
export async function closeSession(ctx: Context, input: Input<'closeSession'>): Promise<Result<'closeSession'>> {
  return inTransaction(ctx, async (tx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (row.status === 'completed') return { session: viewSession(row) };
    requireOpen(row);
    if (row.status === 'idle') {
      return { session: viewSession(await endSession(tx, ctx, row, 'completed', [])) };
    }
    if (!row.closing) {
      await tx.query(sql`
        update sessions set closing = true
        where organization_id = ${row.organizationId} and session_id = ${row.sessionId}`);
    }
    return { session: viewSession(row) };
  });
}

/**
 * Cancels now, whoever holds the Session: the epoch moves on, so that what its worker still writes is refused. A tool call
 * under way may still have its effect; nobody waits for its result.
 */
export async function cancelSession(ctx: Context, input: Input<'cancelSession'>): Promise<Result<'cancelSession'>> {
  return inTransaction(ctx, async (tx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (row.status === 'cancelled') return { session: viewSession(row) };
    requireOpen(row);
    const now = ctx.clock.now();
    const resolved = await cancelApprovals(tx, row, now);
    await tx.query(sql`
      update operations set status = 'cancelled', finished_at = ${now}
      where organization_id = ${row.organizationId} and session_id = ${row.sessionId} and finished_at is null`);
    const ended = await endSession(tx, ctx, row, 'cancelled', resolved);
    tx.afterCommit(() => ctx.wake.publish('inbox', row.sessionId));
    return { session: viewSession(ended) };
  });
}

async function endSession(
  tx: Tx,
  ctx: Context,
  row: SessionRow,
  status: 'completed' | 'cancelled',
  chunksBefore: NewChunk[],
): Promise<SessionRow> {
  const now = ctx.clock.now();
  const head = { ...row };
  const ended: SessionRow = { ...row, status, waitingFor: null, endedAt: now, updatedAt: now, workerId: null };
  const items: NewChunk[] = [...chunksBefore, { type: 'session.status', status, waitingFor: null }];
  await writeTransition(ctx, tx, head, {
    runs: [{ turn: row.turn, items }],
    patch: [
      sql`status = ${status}`,
      sql`waiting_for = null`,
      sql`ended_at = ${now}`,
      sql`epoch = epoch + 1`,
      sql`worker_id = null`,
    ],
    statements: [recordEvent(ctx, now, { type: `session.${status}`, ...sessionEvent(row) })],
    now,
  });
  return { ...ended, nextSeq: row.nextSeq + items.length };
}

async function requireVersion(tx: Tx, organizationId: string, agentId: string, version: number): Promise<void> {
  const found = await tx.execute(sql`
    select 1 from agent_versions
    where organization_id = ${organizationId} and agent_id = ${agentId} and version = ${version}`);
  if (found === 0) throw notFound(`version ${version} of the agent`);
}
