// Sessions: opening, reading, changing, deleting. end-session.ts ends them.
//
// A session is one row (state/session.ts), its journal (journal/), and per turn its messages, operations and approvals. At any
// time it has one writer. While a node runs the session, that node is the writer, and API calls leave what they bring in the
// inbox (state/inbox.ts). A parked session has no process, timer or promise; an API call writes to it under the row's lock.
// The epoch on the row enforces this: whatever a former writer still sends is refused.
//
// A turn begins in begin-turn.ts. A node (node/) runs it.
import type { Input, MessagePart, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { currentVersion } from '../agents/agents.ts';
import { type StoredDraft, storeDraft } from '../agents/drafts.ts';
import type { Tx } from '../db/db.ts';
import { commitPlanned, type PlannedChange, requireRow } from '../db/planned-change.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { recordEvent, withoutValues } from '../events/record.ts';
import { messageParts, textParts } from '../files/message-files.ts';
import { forgetHolders } from '../files/retention.ts';
import { deleteFromTail } from '../journal/tail.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import { lockSession, readSession, sessionEvent, viewSession } from '../session-rows/session.ts';
import { startTurn } from './begin-turn.ts';
import { requirePrice } from './budget.ts';
import { cancelFamily } from './end-session.ts';
import { erasureOf, requireNotErasing } from './end-users.ts';
import { announceNewSession, draftChange, type NewSessionInput, newSession } from './new-session.ts';
import { deletePendingDeliveries } from './retention/delete-ended.ts';
import { releaseTranscripts, trimTranscripts } from './retention/kept-transcripts.ts';
import { deletePairs, insertPairs } from './search/metadata.ts';
import { requireSupportedFiles } from './taken-files.ts';

type Opener = Pick<NewSessionInput, 'keyId' | 'requesters'>;

/**
 * Opens a session. With `input`, its first turn begins in the same transaction. 404 for an unknown agent, version or
 * environment, 409 `agent_archived` or `conflict` (the end user is being erased), 422 `budget_invalid`, `file_invalid` or
 * `file_not_taken`. `opener`: who opens it, and the key that it counts for, if that is not the caller.
 */
export async function openSession(
  ctx: Context,
  input: Input<'openSession'>,
  opener: Opener = { keyId: ctx.keyId, requesters: identitiesOf(ctx) },
): Promise<Result<'openSession'>> {
  const { db } = ctx;
  // Within a transaction, a statement that finds something else would end it.
  const planned = 'batch' in db ? planSession(ctx, input, opener) : undefined;
  if (planned && 'batch' in db && (await commitPlanned({ ...ctx, db }, ctx.organizationId, planned)))
    return planned.result;
  return openInTransaction(ctx, input, opener);
}

async function openInTransaction(
  ctx: Context,
  input: Input<'openSession'>,
  opener: Opener,
): Promise<Result<'openSession'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const [{ agentId, version, pinnedVersion, draft }] = await Promise.all([
      chooseDefinition(tx, ctx, input),
      lockEnvironment(tx, organizationId, input.environment),
      input.endUser && requireNotErasing(tx, organizationId, input.endUser.id),
    ]);
    await requirePrice(ctx, tx, { organizationId, agentId, version }, input.budget);
    const now = ctx.clock.now();
    const sessionId = newUuid();
    const { environment } = input;
    const holder = { organizationId, environment, holderId: sessionId, field: 'input', caller: ctx };
    const content = input.input === undefined ? null : await messageParts(tx, holder, input.input, now);
    await requireSupportedFiles(tx, { organizationId, agentId, version }, holder.field, content);
    const { session, statements, done } = plan(
      ctx,
      input,
      opener,
      { sessionId, agentId, version, pinnedVersion, draft, content },
      now,
    );
    for (const statement of statements) tx.write(statement);
    tx.afterCommit(() => {
      if (pinnedVersion === null) ctx.knownVersions.remember(organizationId, agentId, version);
      done();
    });
    return { session: viewSession(session.row) };
  });
}

interface Opening extends Chosen {
  sessionId: string;
  content: MessagePart[] | null;
}

function plan(ctx: Omit<Context, 'db'>, input: Input<'openSession'>, opener: Opener, opening: Opening, now: Date) {
  const { draft, ...own } = opening;
  // A node with room runs the first turn from the first commit on: no other has to find and claim it.
  const node = own.content ? ctx.localRunners.withRoom(ctx.organizationId) : undefined;
  const session = newSession(
    {
      ...own,
      organizationId: ctx.organizationId,
      environment: input.environment,
      keyId: opener.keyId,
      nodeId: node?.nodeId,
      closeOnIdle: input.closeOnIdle ?? false,
      budget: input.budget ?? null,
      metadata: input.metadata ?? {},
      endUser: input.endUser ?? null,
      requesters: opener.requesters,
      traceParent: ctx.traceParent,
    },
    now,
  );
  const created = recordEvent(ctx, now, {
    type: 'session.created',
    ...sessionEvent(session.row),
    ...(draft && { changes: draftChange(draft) }),
  });
  return {
    session,
    statements: [...session.statements, created],
    done() {
      announceNewSession(ctx, session);
      if (session.firstTurn) startTurn(ctx, node, session.firstTurn);
    },
  };
}

/**
 * Plans a session without reading anything first: for one that needs only its agent's newest version, if this node knows which that
 * was.
 */
export function planSession(
  ctx: Context,
  input: Input<'openSession'>,
  opener: Opener = { keyId: ctx.keyId, requesters: identitiesOf(ctx) },
): PlannedChange<Result<'openSession'>> | undefined {
  const { organizationId } = ctx;
  const { agentId: id, agentVersion, draft, endUser, budget, environment } = input;
  const content = input.input === undefined ? null : textParts(input.input);
  if (id === undefined || agentVersion !== undefined || draft || content === undefined) return undefined;
  if (budget?.maxCostUsd !== undefined) return undefined;
  const agentId = uuidOf('agt', id);
  const version = ctx.knownVersions.of(organizationId, agentId);
  if (version === undefined) return undefined;
  const opening = { sessionId: newUuid(), agentId, version, pinnedVersion: null, content };
  const { session, statements, done } = plan(ctx, input, opener, opening, ctx.clock.now());
  // The environment is locked so that it is there at the commit; the agent by the session's foreign key.
  const newestInEnvironment = sql`
    select 1 from environments e
    join agents a on a.organization_id = e.organization_id and a.agent_id = ${agentId} and a.version = ${version}
      and a.archived_at is null
    where e.organization_id = ${organizationId} and e.name = ${environment} for key share of e`;
  // After the environment is locked, as requireNotErasing has to be.
  const notErasing = endUser
    ? [requireRow(sql`select 1 where not exists (${erasureOf(organizationId, endUser.id)})`)]
    : [];
  return {
    requires: [newestInEnvironment],
    statements: [...notErasing, ...statements],
    result: { session: viewSession(session.row) },
    done,
  };
}

interface Chosen {
  agentId: string;
  version: number;
  pinnedVersion: number | null;
  draft?: StoredDraft | undefined;
}

/** What the session runs: the newest version of its agent, the given one, or a draft. */
async function chooseDefinition(tx: Tx, ctx: Context & { db: Tx }, input: Input<'openSession'>): Promise<Chosen> {
  const { organizationId } = ctx;
  const agentId = input.agentId === undefined ? undefined : uuidOf('agt', input.agentId);
  if (input.draft) {
    if (input.agentVersion !== undefined) throw invalidField('agentVersion', DRAFT_CONFLICT);
    const draft = await storeDraft(ctx, agentId, input.draft);
    return { agentId: draft.agentId, version: draft.version, pinnedVersion: draft.version, draft };
  }
  if (agentId === undefined) throw invalidField('agentId', 'is required without a draft');
  const pinnedVersion = input.agentVersion ?? null;
  const [newest] = await Promise.all([
    currentVersion(tx, organizationId, agentId).catch((error) => {
      ctx.knownVersions.forget(organizationId, agentId);
      throw error;
    }),
    pinnedVersion === null ? undefined : requireVersion(tx, organizationId, agentId, pinnedVersion),
  ]);
  return { agentId, version: pinnedVersion ?? newest, pinnedVersion };
}

export const DRAFT_CONFLICT = 'must not be given with a draft';

export async function getSession(ctx: Context, input: Input<'getSession'>): Promise<Result<'getSession'>> {
  return { session: viewSession(await readSession(ctx.db, ctx.organizationId, uuidOf('ses', input.sessionId))) };
}

/** Metadata can change at any time, also after the session has ended. */
export async function updateSession(ctx: Context, input: Input<'updateSession'>): Promise<Result<'updateSession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    if (input.metadata === undefined) return { session: viewSession(row) };
    const now = ctx.clock.now();
    await Promise.all([
      tx.query(sql`
        update sessions set metadata = ${JSON.stringify(input.metadata)}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and session_id = ${row.sessionId}`),
      ...deletePairs(ctx.organizationId, [row]).map((statement) => tx.query(statement)),
      ...insertPairs(row, input.metadata).map((statement) => tx.query(statement)),
      tx.query(
        recordEvent(ctx, now, {
          type: 'session.updated',
          ...sessionEvent(row),
          changes: withoutValues(
            { metadata: [row.metadata, input.metadata] },
            row.endUserId === null ? [] : ['metadata'],
          ),
        }),
      ),
    ]);
    return { session: viewSession({ ...row, metadata: input.metadata, updatedAt: now }) };
  });
}

/**
 * Deletes a session and its children. Children that are still open are cancelled first. Pending deliveries are dropped. Forks stay,
 * with the messages that they inherit. 409
 * `conflict` while the session is open, or while its parent or root is, because they share a budget.
 */
export async function deleteSession(ctx: Context, input: Input<'deleteSession'>): Promise<Result<'deleteSession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const { organizationId } = ctx;
    const row = await lockSession(tx, organizationId, uuidOf('ses', input.sessionId));
    if (!row.endedAt) throw new ApiError('conflict', `The session is ${row.status}. Close or cancel it first.`);
    const above = [row.parentSessionId, row.rootSessionId].filter((id) => id !== null);
    const open = await tx.execute(sql`
      select 1 from sessions
      where organization_id = ${organizationId} and session_id = any(${above}::uuid[]) and ended_at is null`);
    if (open > 0) throw new ApiError('conflict', 'Its parent session is open. Close or cancel that first.');

    const family = await cancelFamily(tx, ctx, row);
    const ids = family.map(({ sessionId }) => sessionId);
    const now = ctx.clock.now();
    const released = await releaseTranscripts(tx, organizationId, ids);
    await forgetHolders(tx, organizationId, ids, now);
    await Promise.all([
      tx.query(sql`
        delete from segments where organization_id = ${organizationId} and session_id = any(${ids}::uuid[])`),
      tx.query(deleteFromTail(organizationId, ids)),
      tx.query(deletePendingDeliveries(organizationId, ids)),
      tx.query(sql`
        delete from webhook_deliveries where organization_id = ${organizationId} and session_id = any(${ids}::uuid[])`),
      tx.query(sql`
        delete from received_webhooks where organization_id = ${organizationId} and session_id = any(${ids}::uuid[])`),
      ...deletePairs(organizationId, family).map((statement) => tx.query(statement)),
      tx.query(sql`
        delete from sessions where organization_id = ${organizationId} and session_id = any(${ids}::uuid[])`),
      ...family.map((one) => tx.query(recordEvent(ctx, now, { type: 'session.deleted', ...sessionEvent(one) }))),
    ]);
    await trimTranscripts(tx, organizationId, released);
    return { sessionId: input.sessionId, deleted: true };
  });
}

/** 404 if the agent has no such version. */
export async function requireVersion(tx: Tx, organizationId: string, agentId: string, version: number): Promise<void> {
  const found = await tx.execute(sql`
    select 1 from agent_versions
    where organization_id = ${organizationId} and agent_id = ${agentId} and version = ${version}`);
  if (found === 0) throw new ApiError('not_found', `There is no version ${version} of the agent.`);
}
