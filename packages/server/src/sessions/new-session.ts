// The rows of a new session and of its first turn, for the transaction that opens it: an API call, a run of a schedule, or a
// call of an `agent` tool. After the commit the caller calls `announceNewSession` and, if there is a first turn, `startTurn`.
import type { Budget, MessagePart, Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { announceCommit, insertSegment } from '../journal/append.ts';
import { beginning } from '../journal/cursor.ts';
import { subscriptionOf } from '../journal/delivery-mark.ts';
import { encodeItems, type Segment } from '../journal/segment.ts';
import { isDraft } from '../lib/draft-version.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import type { LeftOutColumn } from '../session-rows/left-out.ts';
import type { LocalStart } from '../session-rows/local-start.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { beginTurn } from './begin-turn.ts';
import { insertPairs } from './search/metadata.ts';

export interface NewSessionInput {
  organizationId: string;
  /** Default: a new id. */
  sessionId?: string;
  agentId: string;
  pinnedVersion: number | null;
  version: number;
  environment: string;
  /** The key that the session counts for. */
  keyId: string | null;
  /** The input of its first turn; null: the session begins idle. */
  content: MessagePart[] | null;
  /** The node that runs the first turn from the first commit on; undefined: any node may claim it. */
  nodeId?: string | undefined;
  closeOnIdle: boolean;
  budget: Budget | null;
  metadata: Session['metadata'];
  endUser: Session['endUser'];
  /** Who opens it, as lib/identities.ts names them. Those of its parent or origin are added. */
  requesters: readonly string[];
  /** The W3C `traceparent` of the trace that the first turn belongs to. */
  traceParent?: string | undefined;
  /** The tool call that opens it. */
  parent?: { sessionId: string; operationId: string; rootSessionId: string; depth: number };
  /** The session that it is a fork of, and the turn after which it continues. The caller adds what it inherits (state/inherited.ts). */
  forkedFrom?: { sessionId: string; turn: number; leftOut: LeftOutColumn };
}

export interface NewSession {
  row: SessionRow;
  /** All of them belong in one transaction. */
  statements: Sql[];
  /** The beginning of its journal; undefined if it begins idle. */
  segment: Segment | undefined;
  /** For `startTurn`; undefined if it begins idle. */
  firstTurn: LocalStart | undefined;
}

export function newSession(input: NewSessionInput, now: Date): NewSession {
  const { organizationId, agentId, version, environment, content, nodeId, parent, forkedFrom, traceParent } = input;
  const owner = { organizationId, sessionId: input.sessionId ?? newUuid() };
  const before = forkedFrom?.turn ?? 0;
  const begun = content
    ? beginTurn(owner, before + 1, { messageId: newUuid(), content, traceParent }, version, now)
    : undefined;
  const segment: Segment | undefined = begun && {
    turn: begun.turn,
    seqFrom: 1,
    seqTo: begun.run.items.length,
    body: encodeItems(begun.run.items),
    createdAt: now,
  };
  const row: SessionRow = {
    ...owner,
    agentId,
    pinnedVersion: input.pinnedVersion,
    agentVersion: begun ? version : null,
    environment,
    keyId: input.keyId,
    status: begun ? 'running' : 'idle',
    waitingFor: null,
    stopReason: null,
    turn: begun?.turn ?? before,
    nextSeq: segment ? segment.seqTo + 1 : 1,
    epoch: nodeId ? 1 : 0,
    nodeId: nodeId ?? null,
    tailNode: null,
    tailFrom: null,
    crashes: 0,
    queue: null,
    stop: null,
    turnDeadline: null,
    turnLeftMs: null,
    traceParent: begun?.traceParent ?? null,
    grantedTools: [],
    leftOut: forkedFrom?.leftOut ?? null,
    parentSessionId: parent?.sessionId ?? null,
    parentOperationId: parent?.operationId ?? null,
    rootSessionId: parent?.rootSessionId ?? null,
    depth: parent ? parent.depth + 1 : 0,
    forkedFromSessionId: forkedFrom?.sessionId ?? null,
    forkedAtTurn: forkedFrom?.turn ?? null,
    inbox: 0,
    closing: false,
    closeOnIdle: input.closeOnIdle,
    budget: input.budget,
    error: null,
    metadata: input.metadata,
    endUserId: input.endUser?.id ?? null,
    endUserName: input.endUser?.name ?? null,
    inputTokens: 0,
    outputTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    webSearches: 0,
    steps: 0,
    toolCalls: 0,
    costUsd: null,
    modelCalls: 0,
    reportedTokens: null,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
  };
  return {
    row,
    statements: [
      sql`
        insert into sessions (organization_id, session_id, agent_id, pinned_version, agent_version, environment, key_id, status,
          turn, next_seq, epoch, node_id, runnable_at, trace_parent, parent_session_id, parent_operation_id,
          root_session_id, depth, forked_from_session_id, forked_at_turn, left_out, close_on_idle, budget, metadata, end_user_id,
          end_user_name, requesters, delivery_due, delivery_subscription_id, created_at,
          updated_at)
        select d.organization_id, ${row.sessionId}, ${agentId}, ${row.pinnedVersion}, ${row.agentVersion},
          ${environment}, ${row.keyId}, ${row.status}, ${row.turn}, ${row.nextSeq}, ${row.epoch}, ${row.nodeId},
          ${begun ? now : null}, ${row.traceParent}, ${row.parentSessionId},
          ${row.parentOperationId}, ${row.rootSessionId}, ${row.depth},
          ${row.forkedFromSessionId}, ${row.forkedAtTurn}, ${row.leftOut && JSON.stringify(row.leftOut)}::jsonb, ${row.closeOnIdle},
          ${row.budget && JSON.stringify(row.budget)}, ${JSON.stringify(row.metadata)}, ${row.endUserId}, ${row.endUserName},
          ${requestersOf(organizationId, input)},
          ${segment && !isDraft(row.pinnedVersion) ? sql`d.id is not null, d.id` : sql`false, null`}, ${now}, ${now}
        from (${subscriptionOf(organizationId, environment)}) d`,
      ...insertPairs(owner, row.metadata),
      ...(row.endUserId === null ? [] : [isIndexedBy(row.endUserId, owner)]),
      ...(begun?.statements ?? []),
      ...(segment ? [insertSegment(owner, segment)] : []),
    ],
    segment,
    firstTurn: begun && {
      row: { ...row },
      operations: [begun.modelCall],
      ...(before === 0 && { transcript: [begun.entry] }),
    },
  };
}

/** Requesters of the session that it comes from are read when it is inserted: they may just have increased. */
function requestersOf(organizationId: string, { requesters, parent, forkedFrom }: NewSessionInput): Sql {
  const source = parent ?? forkedFrom;
  if (!source) return sql`${[...requesters]}::text[]`;
  return sql`array(
    select unnest(${[...requesters]}::text[]) union
    select unnest(s.requesters) from sessions s
    where s.organization_id = ${organizationId} and s.session_id = ${source.sessionId})`;
}

/** For the list of an end user's sessions. */
function isIndexedBy(
  endUserId: string,
  { organizationId, sessionId }: { organizationId: string; sessionId: string },
): Sql {
  return sql`
    insert into session_end_users (organization_id, session_id, end_user_id)
    values (${organizationId}, ${sessionId}, ${endUserId})`;
}

/** How the event of a session says which draft the session runs. */
export function draftChange(draft: { sha256: string } | undefined): { draft?: [null, { sha256: string }] } {
  return draft ? { draft: [null, { sha256: draft.sha256 }] } : {};
}

/** After the commit. */
export function announceNewSession(
  platform: Pick<Platform, 'live' | 'wake' | 'metrics' | 'analytics'>,
  { row, segment }: NewSession,
): void {
  platform.analytics.count(row, 'sessionsOpened');
  if (segment)
    announceCommit(platform, { path: 'transition', isText: false }, row, { previous: beginning, segments: [segment] });
}
