// Forks: new sessions that continue the conversation of another session, their origin, after one of its turns.
//
// A fork inherits the transcript up to the end of that turn (state/inherited.ts), the environment, the agent, the end user, what is left out and, unless the request has
// others, the version, the budget and the metadata. It does not inherit the journal, the usage, queued messages, or what approvers
// allowed for the rest of the origin. From then on the two are independent: neither changes the other, not even by being deleted
// (kept-transcripts.ts).
import type { Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { nextVersion } from '../agents/agents.ts';
import { storeDraft } from '../agents/drafts.ts';
import type { Tx } from '../db/db.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { recordEvent } from '../events/record.ts';
import { inheritUses, messageParts } from '../files/message-files.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';
import { formatId, newUuid, parseId, uuidOf } from '../lib/ids.ts';
import { inheritTurns, MAX_INHERITED_SOURCES } from '../session-rows/inherited.ts';
import { inheritedLeftOut } from '../session-rows/left-out.ts';
import { namedFiles } from '../session-rows/named-files.ts';
import {
  readSession,
  type SessionRow,
  sessionColumns,
  sessionEvent,
  viewEndUser,
  viewSession,
} from '../session-rows/session.ts';
import { startTurn } from './begin-turn.ts';
import { requirePrice } from './budget.ts';
import { announceNewSession, draftChange, newSession } from './new-session.ts';
import { DRAFT_CONFLICT, requireVersion } from './sessions.ts';
import { requireSupportedFiles } from './taken-files.ts';

/**
 * Opens a session that continues another one after its turn `atTurn`; with `input`, its next turn begins in the same transaction. 404
 * for an unknown session, turn or version, 409 `turn_not_finished`, `agent_archived` or `conflict` (too many forks of forks), 422
 * `budget_invalid`, `file_invalid` or `file_not_taken`.
 */
export async function forkSession(ctx: Context, input: Input<'forkSession'>): Promise<Result<'forkSession'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const { origin, turn, lastPosition } = await readOrigin(tx, organizationId, input);
    const { agentId, environment } = origin;
    if (input.draft && input.agentVersion !== undefined) throw invalidField('agentVersion', DRAFT_CONFLICT);
    const draft = input.draft && (await storeDraft(ctx, agentId, input.draft));
    const pinnedVersion = draft?.version ?? input.agentVersion ?? origin.pinnedVersion;
    const [version, , , inheritedBudget] = await Promise.all([
      nextVersion(tx, { organizationId, agentId, pinnedVersion }),
      lockEnvironment(tx, organizationId, environment),
      input.agentVersion === undefined ? undefined : requireVersion(tx, organizationId, agentId, input.agentVersion),
      input.budget === undefined ? budgetOf(tx, origin) : undefined,
    ]);
    const budget = inheritedBudget ?? input.budget ?? null;
    await requirePrice(ctx, tx, { organizationId, agentId, version }, budget);
    const now = ctx.clock.now();
    const sessionId = newUuid();
    const holder = { organizationId, environment, holderId: sessionId, field: 'input', caller: ctx };
    const content = input.input === undefined ? null : await messageParts(tx, holder, input.input, now);
    await requireSupportedFiles(tx, { organizationId, agentId, version }, holder.field, content);
    const node = content ? ctx.localRunners.withRoom(organizationId) : undefined;
    const session = newSession(
      {
        organizationId,
        sessionId,
        agentId,
        pinnedVersion,
        version,
        environment,
        keyId: ctx.keyId,
        content,
        nodeId: node?.nodeId,
        closeOnIdle: input.closeOnIdle ?? false,
        budget,
        metadata: input.metadata ?? origin.metadata,
        endUser: viewEndUser(origin),
        requesters: identitiesOf(ctx),
        traceParent: ctx.traceParent,
        forkedFrom: { sessionId: origin.sessionId, turn, leftOut: inheritedLeftOut(origin.leftOut) },
      },
      now,
    );
    const { row, statements, firstTurn } = session;
    for (const statement of [...statements, ...inheritTurns(row, origin, turn, lastPosition)]) tx.write(statement);
    if (origin.usesFiles) await inheritFiles(tx, organizationId, origin.sessionId, sessionId);
    const from = { sessionId: formatId('ses', origin.sessionId), turn };
    tx.write(
      recordEvent(ctx, now, {
        type: 'session.forked',
        ...sessionEvent(row),
        changes: { forkedFrom: [null, from], ...draftChange(draft) },
      }),
    );
    tx.afterCommit(() => {
      announceNewSession(ctx, session);
      if (firstTurn) startTurn(ctx, node, firstTurn);
    });
    return { session: viewSession(row) };
  });
}

/** When the turns are inherited: the files of later turns are not the fork's. */
async function inheritFiles(tx: Tx, organizationId: string, originId: string, forkId: string): Promise<void> {
  const named = await tx.query<{ fileId: string }>(sql`
    select distinct n.file_id as "fileId" from (${namedFiles(organizationId, forkId, { inTools: true })}) n`);
  const fileIds = named.flatMap(({ fileId }) => parseId('file', fileId) ?? []);
  tx.write(inheritUses(organizationId, originId, forkId, fileIds));
}

interface Origin {
  origin: SessionRow & { usesFiles: boolean };
  /** The turn after which the fork continues. */
  turn: number;
  /** The position of the last message of that turn. */
  lastPosition: number;
}

async function readOrigin(tx: Tx, organizationId: string, input: Input<'forkSession'>): Promise<Origin> {
  const sessionId = uuidOf('ses', input.sessionId);
  const finished = sql`case when s.status in ('running', 'waiting') then s.turn - 1 else s.turn end`;
  const atTurn = sql`coalesce(${input.atTurn ?? null}::int, ${finished})`;
  const [, [row]] = await Promise.all([
    // It is not deleted before the fork is there. Its appends do not wait.
    tx.query(sql`
      select 1 from sessions where organization_id = ${organizationId} and session_id = ${sessionId} for key share`),
    // The session and its last message in one snapshot: a retry may be adding messages to the turn.
    tx.query<SessionRow & { finished: number; lastPosition: number | null; sources: number; usesFiles: boolean }>(sql`
      select ${sessionColumns}, ${finished} as finished, exists (
        select 1 from file_uses u
        where u.organization_id = ${organizationId} and u.holder_id = s.session_id
      ) as "usesFiles", (
        select max(m.position) from messages m
        where m.organization_id = ${organizationId} and m.session_id = s.session_id and m.turn = ${atTurn}
      ) as "lastPosition", (
        select count(*)::int from inherited_turns i
        where i.organization_id = ${organizationId} and i.session_id = s.session_id and i.from_turn <= ${atTurn}
      ) as sources
      from sessions s where s.organization_id = ${organizationId} and s.session_id = ${sessionId}`),
  ]);
  if (!row) throw notFound('session');
  const { finished: lastFinished, lastPosition, sources, ...origin } = row;
  const turn = input.atTurn ?? lastFinished;
  if (turn > origin.turn)
    throw new ApiError('not_found', `The session has no turn ${turn}; its last one is ${origin.turn}.`);
  if (turn > lastFinished) {
    throw new ApiError(
      'turn_not_finished',
      `Turn ${turn} is still running. Fork at turn ${lastFinished}, or wait until it ends.`,
    );
  }
  const inheritsFrom = sources + (turn > (origin.forkedAtTurn ?? 0) ? 1 : 0);
  if (inheritsFrom > MAX_INHERITED_SOURCES) {
    throw new ApiError('conflict', `The session is the last of ${sources} forks of forks. Fork it at an earlier turn.`);
  }
  return { origin, turn, lastPosition: lastPosition ?? 0 };
}

/** A child session has its root's. */
async function budgetOf(tx: Tx, { organizationId, rootSessionId, budget }: SessionRow): Promise<SessionRow['budget']> {
  return rootSessionId === null ? budget : (await readSession(tx, organizationId, rootSessionId)).budget;
}
