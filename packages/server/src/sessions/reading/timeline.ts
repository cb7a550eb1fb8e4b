// The timeline of a session: what each turn did, and when.
//
// It has no table of its own. It is read from what running the session stores: the operations of a turn and their approvals,
// the agent version in the turn's first model call, and the `turn.completed` chunk that ends the turn's journal.
import type { Input, Result, SessionTurn, TurnOperation } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Definition } from '../../agents/agents.ts';
import { beginning } from '../../journal/cursor.ts';
import { chunksOf, type Segment } from '../../journal/segment.ts';
import type { Context } from '../../lib/context.ts';
import { shownVersion } from '../../lib/draft-version.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';
import { integerKey, pageOf, pageRequest } from '../../lib/page.ts';
import { isFinished, type Operation, type OperationStatus, usageOf } from '../../session-rows/operations.ts';
import { readSession, type SessionRow } from '../../session-rows/session.ts';
import { modelName } from '../../usage/prices.ts';

interface Row
  extends Pick<
    Operation,
    | 'turn'
    | 'step'
    | 'operationId'
    | 'kind'
    | 'status'
    | 'tool'
    | 'toolType'
    | 'usage'
    | 'model'
    | 'childSessionId'
    | 'agentVersion'
    | 'unavailableServers'
    | 'toolType'
    | 'error'
  > {
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  firstTokenAt: string | null;
  attempts: TurnOperation['attempts'] | null;
  toolsLeftOut: SessionTurn['toolsLeftOut'] | null;
  compaction: (NonNullable<TurnOperation['compaction']> & { model: string | null }) | null;
  /** The approval of a call that needed one. */
  approval: { status: TurnOperation['status']; requestedAt: string; resolvedAt: string | null } | null;
}

/** What a line shows of an error. */
const ERROR_MAX_CHARACTERS = 500;

/** How a turn ended. */
type Ending = Pick<SessionTurn, 'status' | 'stopReason' | 'error' | 'endedAt'>;

// API clients need not distinguish every internal status.
const shownStatus: Readonly<Record<OperationStatus, TurnOperation['status']>> = {
  pending: 'running',
  awaiting_approval: 'pending',
  ready: 'pending',
  running: 'running',
  awaiting_result: 'waiting',
  awaiting_session: 'waiting',
  succeeded: 'succeeded',
  failed: 'failed',
  denied: 'denied',
  cancelled: 'cancelled',
  unknown: 'unknown',
};

/** Newest turn first. */
export async function listTurns(ctx: Context, input: Input<'listTurns'>): Promise<Result<'listTurns'>> {
  const { db, organizationId } = ctx;
  const request = pageRequest(`turns:${organizationId}:${input.sessionId}`, input, { isKey: integerKey });
  const session = await readSession(db, organizationId, uuidOf('ses', input.sessionId));
  // Turns are numbered without gaps, so the turns of a page are known before anything is read. A fork's continue those of its origin.
  const newest = Math.min(session.turn, Number(request.after ?? session.turn + 1) - 1);
  const count = Math.max(0, newest - (session.forkedAtTurn ?? 0));
  const numbers = Array.from({ length: Math.min(count, request.limit + 1) }, (_, index) => newest - index);
  const turns = await viewTurns(ctx, session, numbers.slice(0, request.limit));
  return pageOf(request, numbers, String, (turn) => turns.get(turn)!);
}

/** These turns, which the session has. */
export async function viewTurns(
  ctx: Context,
  session: SessionRow,
  shown: readonly number[],
): Promise<Map<number, SessionTurn>> {
  const [operations, endings] = await Promise.all([readTurns(ctx, session, shown), readEndings(ctx, session, shown)]);
  const versions = [...operations.values()].flatMap((rows) => rows.flatMap((row) => row.agentVersion ?? []));
  const isWaiting = (turn: number) => turn === session.turn && session.status === 'waiting';
  const models = await readModels(ctx, session.agentId, [...new Set(versions)]);
  const viewTurn = (turn: number): SessionTurn => {
    const rows = operations.get(turn)!;
    const begun = rows.filter((row) => row.agentVersion !== null);
    const { agentVersion } = begun.at(-1)!;
    const { createdAt, unavailableServers } = begun[0]!;
    const modelOf = ({ step }: Row) =>
      models.get((begun.findLast((one) => one.step <= step) ?? begun[0]!).agentVersion!)!;
    return {
      turn,
      agentVersion: shownVersion(agentVersion!),
      ...endings.get(turn)!,
      startedAt: createdAt.toISOString(),
      usage: usageOf(rows),
      unavailableToolServers: unavailableServers ?? [],
      toolsLeftOut: rows.flatMap(({ toolsLeftOut }) => toolsLeftOut ?? []),
      operations: rows.flatMap((row) => view(row, modelOf(row), isWaiting(turn))),
    };
  };
  return new Map(shown.map((turn) => [turn, viewTurn(turn)]));
}

/** By turn, in the order in which they were created. */
async function readTurns(
  { db }: Context,
  { organizationId, sessionId }: SessionRow,
  turns: readonly number[],
): Promise<Map<number, Row[]>> {
  const rows = await db.query<Row>(sql`
    select o.turn, o.step, o.operation_id as "operationId", o.kind, o.status, o.tool, o.usage, o.model,
      o.tool_type as "toolType", left(o.error, ${ERROR_MAX_CHARACTERS}) as error, o.trace->>'firstTokenAt' as "firstTokenAt", o.trace->'attempts' as attempts,
      o.trace->'toolsLeftOut' as "toolsLeftOut",
      o.child_session_id as "childSessionId", o.agent_version as "agentVersion",
      o.unavailable_servers as "unavailableServers", o.created_at as "createdAt",
      o.started_at as "startedAt", o.finished_at as "finishedAt",
      case when a.operation_id is not null then json_build_object('status', a.status, 'requestedAt', a.requested_at,
        'resolvedAt', a.resolved_at) end as approval,
      case when c.operation_id is not null then json_build_object(
        'untilTurn', case when c.from_position > 0 then c.from_turn else c.from_turn - 1 end,
        'tokensBefore', c.tokens_before, 'tokensAfter', c.tokens_after, 'summary', c.summary, 'model', c.model
      ) end as compaction
    from operations o
    left join approvals a on a.organization_id = o.organization_id and a.operation_id = o.operation_id
    left join compactions c on o.kind = 'compaction' and c.organization_id = o.organization_id
      and c.session_id = o.session_id and c.operation_id = o.operation_id
    where o.organization_id = ${organizationId} and o.session_id = ${sessionId} and o.turn = any(${[...turns]}::int[])
    order by o.turn, o.step, sign(o.index), abs(o.index)`);
  return Map.groupBy(rows, ({ turn }) => turn);
}

/**
 * The last `turn.completed` is followed by the status of the same commit and at most one more commit, which ended the session. If a
 * turn that was retried is cancelled, the two last commits are those of the retry.
 */
async function readEndings(
  { db }: Context,
  session: SessionRow,
  turns: readonly number[],
): Promise<Map<number, Ending>> {
  const { organizationId, sessionId, status } = session;
  const isUnderWay = (turn: number) => turn === session.turn && (status === 'running' || status === 'waiting');
  const segments = await db.query<Segment>(sql`
    select g.turn, g.seq_from as "seqFrom", g.seq_to as "seqTo", g.body, g.created_at as "createdAt"
    from unnest(${turns.filter((turn) => !isUnderWay(turn))}::int[]) as t(turn)
    cross join lateral (
      select x.turn, x.seq_from, x.seq_to, x.body, x.created_at from segments x
      where x.organization_id = ${organizationId} and x.session_id = ${sessionId} and x.turn = t.turn
      order by x.seq_to desc limit 2) g`);
  const endings = new Map<number, Ending>();
  for (const turn of turns) {
    endings.set(
      turn,
      isUnderWay(turn)
        ? { status: status as 'running' | 'waiting', stopReason: null, error: null, endedAt: null }
        : { status: 'cancelled', stopReason: null, error: null, endedAt: session.endedAt?.toISOString() ?? null },
    );
  }
  for (const segment of segments) {
    const completed = chunksOf(segment, beginning).find(({ type }) => type === 'turn.completed');
    if (completed?.type !== 'turn.completed') continue;
    const { stopReason, error = null } = completed;
    const endedAt = segment.createdAt.toISOString();
    endings.set(segment.turn, { status: stopReason === 'error' ? 'failed' : 'completed', stopReason, error, endedAt });
  }
  return endings;
}

/** The model's name in each version, or draft, of the agent. */
async function readModels(
  { db, organizationId }: Context,
  agentId: string,
  versions: readonly number[],
): Promise<Map<number, string>> {
  const rows = await db.query<{ version: number; model: Definition['model'] }>(sql`
    select version, definition->'model' as model from agent_versions
    where organization_id = ${organizationId} and agent_id = ${agentId} and version = any(${[...versions]}::int[])
    union all
    select version, definition->'model' from agent_drafts
    where organization_id = ${organizationId} and agent_id = ${agentId} and version = any(${[...versions]}::int[])`);
  return new Map(rows.map(({ version, model }) => [version, modelName(model)]));
}

function view(row: Row, model: string, isWaiting: boolean): TurnOperation[] {
  const { kind, status, step, createdAt, finishedAt, usage, approval } = row;
  const isModel = kind !== 'tool';
  // A model call, and a compaction, is stored immediately before it starts.
  const startedAt = isModel ? createdAt : row.startedAt;
  const operation: TurnOperation = {
    operationId: formatId('op', row.operationId),
    kind,
    name: isModel ? (row.compaction?.model ?? row.model ?? model) : row.tool!,
    step,
    // A model call has no response in a session that waits only if no model is available.
    status: kind === 'model' && status === 'pending' && isWaiting ? 'waiting' : shownStatus[status],
    startedAt: startedAt?.toISOString() ?? null,
    endedAt: isFinished(row) ? (finishedAt?.toISOString() ?? null) : null,
    toolCallId: isModel ? null : formatId('call', row.operationId),
    childSessionId: row.childSessionId && formatId('ses', row.childSessionId),
    toolType: row.toolType,
    error: row.error,
    firstTokenAt: row.firstTokenAt,
    attempts: row.attempts ?? [],
    usage,
    compaction: row.compaction && shownCompaction(row.compaction),
  };
  if (!approval) return [operation];
  const asked: TurnOperation = {
    ...operation,
    kind: 'approval',
    status: approval.status,
    startedAt: new Date(approval.requestedAt).toISOString(),
    endedAt: approval.resolvedAt && new Date(approval.resolvedAt).toISOString(),
    childSessionId: null,
    error: null,
    compaction: null,
  };
  return [asked, operation];
}

function shownCompaction({ model: _, ...shown }: NonNullable<Row['compaction']>): TurnOperation['compaction'] {
  return shown;
}
