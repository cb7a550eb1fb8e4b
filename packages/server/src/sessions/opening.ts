// A new Session's rows: the same whether an API call, a schedule or an `agent` tool opens it.
import type { Budget, MessagePart, Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { insertSegment } from '../journal/append.ts';
import { beginning } from '../journal/cursor.ts';
import { subscriptionOf } from '../journal/delivery-mark.ts';
import { encodeItems, type Segment } from '../journal/segment.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import type { OwnWorker } from '../runtime/node/local-start.ts';
import { beginTurn } from './begin-turn.ts';
import { insertPairs } from './metadata.ts';
import type { SessionRow } from './state/session.ts';

export interface Opening {
  organizationId: string;
  /** Given where it has to be known before. */
  sessionId?: string;
  agentId: string;
  pinnedVersion: number | null;
  version: number;
  environment: string;
  /** Its first turn begins at once. */
  content: MessagePart[] | null;
  /** Who has its first turn from the beginning. */
  worker?: OwnWorker | undefined;
  closeOnIdle: boolean;
  budget: Budget | null;
  metadata: Session['metadata'];
  /** Of the trace that its first turn belongs to. */
  traceParent?: string | undefined;
  /** The call that opens it. */
  parent?: { sessionId: string; operationId: string; rootSessionId: string; depth: number };
}

export interface Opened {
  row: SessionRow;
  /** For one transaction. */
  statements: Sql[];
  /** After its commit. */
  announce(platform: Pick<Platform, 'live' | 'wake' | 'metrics'>): void;
}

export function openingOf(opening: Opening, now: Date): Opened {
  const { organizationId, agentId, version, environment, content, worker, parent, traceParent } = opening;
  const owner = { organizationId, sessionId: opening.sessionId ?? newUuid() };
  const begun = content ? beginTurn(owner, 1, { messageId: newUuid(), content, traceParent }, version, now) : undefined;
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
    pinnedVersion: opening.pinnedVersion,
    agentVersion: begun ? version : null,
    environment,
    status: begun ? 'running' : 'idle',
    waitingFor: null,
    stopReason: null,
    turn: begun ? 1 : 0,
    nextSeq: segment ? segment.seqTo + 1 : 1,
    epoch: worker ? 1 : 0,
    nodeId: worker?.nodeId ?? null,
    crashes: 0,
    queue: null,
    stop: null,
    turnDeadline: null,
    turnLeftMs: null,
    traceParent: begun?.traceParent ?? null,
    grantedTools: [],
    parentSessionId: parent?.sessionId ?? null,
    parentOperationId: parent?.operationId ?? null,
    rootSessionId: parent?.rootSessionId ?? null,
    depth: parent ? parent.depth + 1 : 0,
    inbox: 0,
    closing: false,
    closeOnIdle: opening.closeOnIdle,
    budget: opening.budget,
    error: null,
    metadata: opening.metadata,
    inputTokens: 0,
    outputTokens: 0,
    cachedTokens: 0,
    steps: 0,
    toolCalls: 0,
    costUsd: null,
    modelCalls: 0,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
  };
  return {
    row,
    statements: [
      sql`
        insert into sessions (organization_id, session_id, agent_id, pinned_version, agent_version, environment, status,
          turn, next_seq, epoch, node_id, runnable_at, trace_parent, parent_session_id, parent_operation_id,
          root_session_id, depth, close_on_idle, budget, metadata, delivery_due, delivery_subscription_id, created_at,
          updated_at)
        select ${organizationId}, ${row.sessionId}, ${agentId}, ${row.pinnedVersion}, ${row.agentVersion},
          ${environment}, ${row.status}, ${row.turn}, ${row.nextSeq}, ${row.epoch}, ${row.nodeId},
          ${begun ? now : null}, ${row.traceParent}, ${row.parentSessionId},
          ${row.parentOperationId}, ${row.rootSessionId}, ${row.depth}, ${row.closeOnIdle},
          ${row.budget && JSON.stringify(row.budget)}, ${JSON.stringify(row.metadata)},
          ${segment ? sql`d.id is not null, d.id` : sql`false, null`}, ${now}, ${now}
        from (${subscriptionOf(organizationId, environment)}) d`,
      ...insertPairs(owner, row.metadata),
      ...(begun?.statements ?? []),
      ...(segment ? [insertSegment(owner, segment)] : []),
    ],
    announce({ live, wake, metrics }) {
      if (!begun || !segment) return;
      metrics.appendChunks.inc({ path: 'transition' }, segment.seqTo);
      live.committed(row.sessionId, beginning, [segment]);
      wake.publish('journal', row);
      if (worker) worker.take({ row: { ...row }, operations: [begun.modelCall], transcript: [begun.entry] });
      else wake.publish('runnable', row);
    },
  };
}
