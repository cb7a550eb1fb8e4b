// Child sessions: a call of an `agent` tool opens one and waits for it. The child's last response is the call's result. A child
// shares its parent's budget, is one level deeper, and requests its own approvals.
//
// When a child ends, its row is marked `parent_due`. The first node that sees the mark reports to the parent, in a transaction
// that locks the parent first. Every transaction that changes both locks the parent before the child, so none can deadlock.
import { type AgentTool, CONTINUE_WHEN_CUT_MAX, type StopReason } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { insertDraft } from '../agents/drafts.ts';
import { readDefinition } from '../agents/read-definition.ts';
import type { Tx } from '../db/db.ts';
import { type EventSource, recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { isDraft } from '../lib/draft-version.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { storableJson, storableText } from '../lib/text.ts';
import type { Platform } from '../platform.ts';
import { recordAwaitedResult } from '../session-rows/awaited-result.ts';
import { type Operation, operationColumns, resultChunk, updateOperation } from '../session-rows/operations.ts';
import { addRequestersOfChild } from '../session-rows/requesters.ts';
import { lockSession, readSession, type SessionRow, sessionEvent, viewEndUser } from '../session-rows/session.ts';
import { outputIn } from '../turn/output.ts';
import { unpricedModel } from './budget.ts';
import { draftChange, type NewSession, newSession } from './new-session.ts';

/** A session that was opened through the API has depth 0. */
const MAX_DEPTH = 5;

/** The rows of a call's child, for the transaction that shows the call; or a text for the model that says why there is none. */
export async function openChild(
  { db, clock, prices }: Pick<Platform, 'db' | 'clock' | 'prices'>,
  parent: SessionRow,
  tool: AgentTool,
  call: Operation,
  source: EventSource & { traceParent: string | undefined },
): Promise<NewSession | string> {
  if (parent.depth >= MAX_DEPTH) return `Agents may call one another ${MAX_DEPTH} deep, and this one is the last.`;
  const agentId = uuidOf('agt', tool.agentId);
  const { organizationId } = parent;
  const [agent] = await db.query<{ version: number; isArchived: boolean }>(sql`
    select version, archived_at is not null as "isArchived" from agents
    where organization_id = ${organizationId} and agent_id = ${agentId}`);
  if (!agent || agent.isArchived || agent.version === 0) return 'This agent is archived and takes no new work.';
  const { version } = agent;
  if (await unpricedModel({ prices }, db, { organizationId, agentId, version }, parent.budget)) {
    return 'The budget is in money, and the model of this agent has no price.';
  }
  const now = clock.now();
  // What a draft opens is a draft: it is not delivered to webhooks either.
  const draft = isDraft(parent.pinnedVersion)
    ? await insertDraft(
        { db, clock, organizationId },
        agentId,
        await readDefinition(db, organizationId, agentId, version),
      )
    : undefined;
  const child = newSession(
    {
      organizationId,
      agentId,
      pinnedVersion: draft?.version ?? null,
      version: draft?.version ?? version,
      environment: parent.environment,
      keyId: parent.keyId,
      content: [{ type: 'text', text: (call.input as { input: string }).input }],
      closeOnIdle: true,
      budget: parent.budget,
      metadata: {},
      endUser: viewEndUser(parent),
      requesters: [],
      traceParent: source.traceParent,
      parent: {
        sessionId: parent.sessionId,
        operationId: call.operationId,
        rootSessionId: parent.rootSessionId ?? parent.sessionId,
        depth: parent.depth,
      },
    },
    now,
  );
  const created = recordEvent(source, now, {
    type: 'session.created',
    ...sessionEvent(child.row),
    changes: { parentSessionId: [null, formatId('ses', parent.sessionId)], ...draftChange(draft) },
  });
  return { ...child, statements: [...child.statements, created] };
}

/** A child that has ended and whose result the parent does not have yet. */
export interface UnreportedChild {
  organizationId: string;
  sessionId: string;
}

export const UNREPORTED_PAGE_SIZE = 200;

/** At most UNREPORTED_PAGE_SIZE of them from each database server. */
export async function unreportedChildren({ shards }: Pick<Platform, 'shards'>): Promise<UnreportedChild[]> {
  const { rows } = await shards.query<UnreportedChild>(
    'looking for ended child sessions',
    (within) => sql`
    select organization_id as "organizationId", session_id as "sessionId" from sessions
    where parent_due ${within()} limit ${UNREPORTED_PAGE_SIZE}`,
  );
  return rows;
}

/** The hinted sessions that are unreported children or could not be read. */
export async function unreportedAmong(
  { db, shards }: Pick<Platform, 'db' | 'shards'>,
  hints: readonly UnreportedChild[],
): Promise<UnreportedChild[]> {
  const found: UnreportedChild[] = [];
  const unread = await shards.forEachShardWithTimeout(
    'reading ended child sessions',
    hints,
    ({ organizationId }) => organizationId,
    async (group) => {
      const organizations = group.map(({ organizationId }) => organizationId);
      const rows = await db.query<UnreportedChild>(sql`
        select h.org as "organizationId", h.sid as "sessionId"
        from unnest(${organizations}::uuid[], ${group.map(({ sessionId }) => sessionId)}::uuid[]) as h(org, sid)
        cross join lateral (
          select 1 from sessions x
          where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
            and x.session_id = h.sid and x.parent_due
          limit 1) s`);
      for (const row of rows) found.push(row);
    },
  );
  return [...found, ...unread.flatMap(({ items }) => items)];
}

/** Gives the parent the child's result. Does nothing if another node already did, or if either session was deleted. */
export async function reportToParent(
  platform: Platform,
  { organizationId, sessionId }: UnreportedChild,
): Promise<void> {
  await platform.db.transaction(async (tx) => {
    const child = await readSession(tx, organizationId, sessionId).catch(undefinedIfNotFound);
    if (!child?.parentSessionId || !child.endedAt) return;
    const parent = await lockSession(tx, organizationId, child.parentSessionId).catch(undefinedIfNotFound);
    await tx.query(sql`
      update sessions set parent_due = false
      where organization_id = ${organizationId} and session_id = ${sessionId} and parent_due`);
    if (!parent || parent.endedAt) return;
    const [call] = await tx.query<Operation>(sql`
      select ${operationColumns} from operations o
      where organization_id = ${organizationId} and operation_id = ${child.parentOperationId}
        and status = 'awaiting_session'`);
    if (!call) return;
    const ended: Operation = { ...call, ...(await childOutcome(tx, child)) };
    await Promise.all([
      tx.query(updateOperation(parent, ended, platform.clock.now())),
      tx.query(addRequestersOfChild(child, parent)),
    ]);
    await recordAwaitedResult(tx, platform, parent, [resultChunk(ended)], {
      kind: 'tool_result',
      operationId: ended.operationId,
    });
  });
}

function undefinedIfNotFound(error: unknown): undefined {
  if (!(error instanceof ApiError)) throw error;
}

/** Why a turn ended without a final response, for the parent's model. */
const STOPPED: Record<Exclude<StopReason, 'endTurn' | 'error'>, string> = {
  maxOutputTokens: 'its response reached the token limit',
  maxSteps: 'it reached its limit of steps',
  budgetReached: 'the budget is used up',
  refusal: 'its model refused',
  interrupted: 'it was interrupted',
  timedOut: 'it took too long',
};

/** The outcome of the call that opened the child. */
async function childOutcome(tx: Tx, child: SessionRow): Promise<Pick<Operation, 'status' | 'output' | 'error'>> {
  const failed = (error: string) => ({ status: 'failed' as const, output: null, error: storableText(error) });
  if (child.status === 'failed') return failed(`The agent failed: ${child.error?.message ?? 'no reason is known'}`);
  if (child.status === 'cancelled') return failed("The agent's session was cancelled.");
  const text = await lastResponse(tx, child);
  if (child.stopReason !== null && child.stopReason !== 'endTurn' && child.stopReason !== 'error') {
    const lastText = text === '' ? '' : ` Its last text: ${text}`;
    return failed(`The agent stopped before it finished: ${STOPPED[child.stopReason]}.${lastText}`);
  }
  const { outputSchema } = await readDefinition(tx, child.organizationId, child.agentId, child.agentVersion!);
  return { status: 'succeeded', output: outputSchema === null ? text : storableJson(outputIn(text)), error: null };
}

/** The text of the last response in the child's last turn, with the parts in which it was continued. */
async function lastResponse(tx: Tx, { organizationId, sessionId, turn }: SessionRow): Promise<string> {
  const entries = await tx.query<{ role: string; content: { type: string; text?: string }[] }>(sql`
    select role, content from messages
    where organization_id = ${organizationId} and session_id = ${sessionId} and turn = ${turn}
    order by position desc limit ${2 + CONTINUE_WHEN_CUT_MAX}`);
  const last = entries.findIndex(({ role }) => role === 'assistant');
  const before = entries.findIndex(({ role }, index) => index > last && role !== 'assistant');
  return entries
    .slice(Math.max(last, 0), before === -1 ? entries.length : before)
    .reverse()
    .flatMap(({ content }) => content.map(({ text = '' }) => text))
    .join('');
}
