// The session row. It is also the session's queue entry (runnable_at, node_id), its owner (node_id), its fencing token (epoch)
// and the end of its journal (turn, next_seq). While a node runs the session, only that node appends; API calls add to
// session_inbox. To a parked session the API call appends itself, under the row's lock.
import type { Budget, Session, SessionError, SessionStatus, StopReason, WaitingFor } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { formatCursor } from '../journal/cursor.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { isDraft, shownVersion } from '../lib/draft-version.ts';
import { formatId } from '../lib/ids.ts';
import { rareCounts } from '../usage/rare-counts.ts';
import { type LeftOutColumn, viewLeftOut } from './left-out.ts';

export interface SessionRow {
  organizationId: string;
  sessionId: string;
  agentId: string;
  pinnedVersion: number | null;
  agentVersion: number | null;
  environment: string;
  /** The key that it counts for: the one that opened the root session, or created its schedule. */
  keyId: string | null;
  status: SessionStatus;
  waitingFor: WaitingFor | null;
  stopReason: StopReason | null;
  turn: number;
  nextSeq: number;
  epoch: number;
  nodeId: string | null;
  /** Where the session may have text after `nextSeq` (journal/tail.ts). */
  tailNode: string | null;
  tailFrom: number | null;
  /** How often a node died while it ran the current step (node/claims/crashes.ts). */
  crashes: number;
  queue: string | null;
  stop: 'interrupt' | 'cancel' | null;
  turnDeadline: Date | null;
  turnLeftMs: number | null;
  traceParent: string | null;
  grantedTools: string[];
  leftOut: LeftOutColumn;
  parentSessionId: string | null;
  parentOperationId: string | null;
  rootSessionId: string | null;
  depth: number;
  /** For a fork: the session whose conversation it continues, which may be deleted, and the turn after which. */
  forkedFromSessionId: string | null;
  forkedAtTurn: number | null;
  inbox: number;
  closing: boolean;
  closeOnIdle: boolean;
  budget: Budget | null;
  error: SessionError | null;
  metadata: Session['metadata'];
  endUserId: string | null;
  endUserName: string | null;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  webSearches: number;
  steps: number;
  toolCalls: number;
  costUsd: number | null;
  modelCalls: number;
  /** What the last model call read and wrote, in tokens; null if nothing is known of it. */
  reportedTokens: number | null;
  createdAt: Date;
  updatedAt: Date;
  endedAt: Date | null;
}

/** The columns of a SessionRow, of the table under this alias. */
export const sessionColumns: Sql = sql`
  s.organization_id as "organizationId", s.session_id as "sessionId", s.agent_id as "agentId",
  s.pinned_version as "pinnedVersion", s.agent_version as "agentVersion", s.environment, s.key_id as "keyId", s.status,
  s.waiting_for as "waitingFor", s.stop_reason as "stopReason", s.turn, s.next_seq as "nextSeq", s.epoch,
  s.node_id as "nodeId", s.tail_node as "tailNode", s.tail_from as "tailFrom", s.crashes, s.queue, s.stop, s.turn_deadline as "turnDeadline", s.turn_left_ms as "turnLeftMs",
  s.trace_parent as "traceParent",
  s.granted_tools as "grantedTools", s.left_out as "leftOut", s.parent_session_id as "parentSessionId",
  s.parent_operation_id as "parentOperationId", s.root_session_id as "rootSessionId", s.depth,
  s.forked_from_session_id as "forkedFromSessionId", s.forked_at_turn as "forkedAtTurn", s.inbox, s.closing, s.close_on_idle as "closeOnIdle", s.budget, s.error, s.metadata,
  s.end_user_id as "endUserId", s.end_user_name as "endUserName",
  s.input_tokens as "inputTokens", s.output_tokens as "outputTokens", s.cached_tokens as "cachedTokens",
  s.cache_write_tokens as "cacheWriteTokens", s.web_searches as "webSearches", s.steps,
  s.tool_calls as "toolCalls", s.cost_usd::float8 as "costUsd", s.model_calls as "modelCalls", s.context_tokens as "reportedTokens", s.created_at as "createdAt", s.updated_at as "updatedAt",
  s.ended_at as "endedAt"`;

/** 404 if the organization has no such session. */
export async function readSession(db: Queryable, organizationId: string, sessionId: string): Promise<SessionRow> {
  return selectSession(db, organizationId, sessionId, empty);
}

/** No other transaction can change, append to or claim the session until this one ends. */
export async function lockSession(tx: Tx, organizationId: string, sessionId: string): Promise<SessionRow> {
  return selectSession(tx, organizationId, sessionId, sql`for no key update`);
}

async function selectSession(db: Queryable, organizationId: string, sessionId: string, lock: Sql): Promise<SessionRow> {
  const [row] = await db.query<SessionRow>(sql`
    select ${sessionColumns} from sessions s
    where s.organization_id = ${organizationId} and s.session_id = ${sessionId} ${lock}`);
  if (!row) throw notFound('session');
  return row;
}

/** 409 `session_ended` if the session has ended. */
export function requireOpen(row: SessionRow): void {
  if (row.endedAt)
    throw new ApiError(
      'session_ended',
      `The session is ${row.status} and has ended. Its journal and transcript can be read.`,
    );
}

/** The session as the API shows it. */
export function viewSession(row: SessionRow): Session {
  return {
    sessionId: formatId('ses', row.sessionId),
    agentId: formatId('agt', row.agentId),
    agentVersion: row.agentVersion === null ? null : shownVersion(row.agentVersion),
    draft: isDraft(row.pinnedVersion),
    environment: row.environment,
    status: row.status,
    waitingFor: row.waitingFor,
    stopReason: row.stopReason,
    turn: row.turn,
    cursor: row.nextSeq > 1 ? formatCursor({ turn: row.turn, seq: row.nextSeq - 1 }) : null,
    usage: {
      inputTokens: row.inputTokens,
      outputTokens: row.outputTokens,
      cachedTokens: row.cachedTokens,
      ...rareCounts(row),
      steps: row.steps,
      toolCalls: row.toolCalls,
      costUsd: row.costUsd,
    },
    budget: row.budget,
    error: row.error,
    leftOut: viewLeftOut(row.leftOut),
    metadata: row.metadata,
    endUser: viewEndUser(row),
    parentSessionId: row.parentSessionId && formatId('ses', row.parentSessionId),
    forkedFrom:
      row.forkedFromSessionId === null
        ? null
        : {
            sessionId: formatId('ses', row.forkedFromSessionId),
            turn: row.forkedAtTurn!,
          },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
  };
}

/** The end user that the session is for. */
export function viewEndUser({
  endUserId,
  endUserName,
}: Pick<SessionRow, 'endUserId' | 'endUserName'>): Session['endUser'] {
  return endUserId === null ? null : { id: endUserId, ...(endUserName !== null && { name: endUserName }) };
}

/** `agt_…`: the agent of a session, for a record about something of it; null if the session was deleted. */
export async function agentIdOf(db: Queryable, organizationId: string, sessionId: string): Promise<string | null> {
  const [row] = await db.query<{ agentId: string }>(sql`
    select agent_id as "agentId" from sessions where organization_id = ${organizationId} and session_id = ${sessionId}`);
  return row ? formatId('agt', row.agentId) : null;
}

/** How events of the event log name a session. */
export function sessionEvent(row: { sessionId: string; environment: string; agentId: string }) {
  return {
    resource: { type: 'session', id: formatId('ses', row.sessionId) },
    environment: row.environment,
    sessionId: formatId('ses', row.sessionId),
    agentId: formatId('agt', row.agentId),
  };
}
