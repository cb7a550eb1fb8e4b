// Messages of a session: sending one, reading the transcript.
import type { Input, Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { nextVersion } from '../agents/agents.ts';
import { recordEvent } from '../events/record.ts';
import { messageParts } from '../files/message-files.ts';
import { ApiError } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { firstBytes, type IsKey, pageOf, pageRequest } from '../lib/page.ts';
import { addToInbox, requireRoomInQueue } from '../session-rows/inbox.ts';
import { isOfSource, transcriptSources } from '../session-rows/inherited.ts';
import { callModelsNow, goBeforeOthers, waitsForLimit, waitsForOutage } from '../session-rows/parked.ts';
import { addRequester } from '../session-rows/requesters.ts';
import {
  lockSession,
  readSession,
  requireOpen,
  type SessionRow,
  sessionEvent,
  viewSession,
} from '../session-rows/session.ts';
import { contentOf, type TranscriptEntry, viewEntry } from '../session-rows/transcript.ts';
import { beginTurn, runOnIdle } from './begin-turn.ts';
import { requirePrice } from './budget.ts';
import { interruptTurn } from './stop.ts';
import { requireSupportedFiles } from './taken-files.ts';

/**
 * Begins the next turn: at once if the session is idle, else after the current turn. With `onBusy: "steer"` the current turn
 * is interrupted, and this message is next. 409 `session_ended` or `agent_archived`, 409 `session_busy` with `onBusy: "reject"`,
 * 429 `queue_full` if 1,000 messages wait for their turns, 422 `file_invalid` or `file_not_taken`, 422 `budget_invalid` if the budget is in money and the agent's model has no price.
 */
export async function sendMessage(ctx: Context, input: Input<'sendMessage'>): Promise<Result<'sendMessage'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    requireOpen(row);
    if (row.closing)
      throw new ApiError('session_ended', 'The session is closing and accepts no more messages. Open a new one.');
    const [version] = await Promise.all([nextVersion(tx, row), tx.query(addRequester(ctx, row))]);
    const now = ctx.clock.now();
    const holder = { ...row, holderId: row.sessionId, field: 'content', caller: ctx };
    const content = await messageParts(tx, holder, input.content, now);
    const { organizationId, agentId } = row;
    await requireSupportedFiles(tx, { organizationId, agentId, version }, holder.field, content);

    if (row.status !== 'idle') {
      if (input.onBusy === 'reject') {
        const otherwise =
          'With onBusy "queue" the message has its turn afterwards, with "steer" instead of the present one.';
        throw new ApiError('session_busy', `The session is ${row.status}. ${otherwise}`);
      }
      requireRoomInQueue(row);
      const steer = input.onBusy === 'steer';
      const { traceParent } = ctx;
      const message = {
        kind: 'message' as const,
        content,
        ...(steer && { steer }),
        ...(traceParent && { traceParent }),
      };
      const messageId = await addToInbox(tx, row, message, { wake: ctx.wake, now });
      // A person waits for the end of the present turn from now on.
      if (!steer && waitsForOutage(row)) await callModelsNow(tx, row, { wake: ctx.wake, now });
      if (!steer && waitsForLimit(row)) await tx.query(goBeforeOthers(row));
      if (steer && !row.stop) {
        await interruptTurn(tx, row, { wake: ctx.wake, now });
        await tx.query(recordEvent(ctx, now, { type: 'session.interrupted', ...sessionEvent(row) }));
      }
      return { session: viewSession(row), messageId: formatId('msg', messageId) };
    }

    const messageId = newUuid();
    await requirePrice(ctx, tx, { organizationId, agentId, version }, row.budget);
    const begun = beginTurn(row, row.turn + 1, { messageId, content, traceParent: ctx.traceParent }, version, now);
    const first = { ...begun, agentVersion: version, operations: [begun.modelCall] };
    const after = await runOnIdle(tx, ctx, row, first, now);
    return { session: viewSession(after), messageId: formatId('msg', messageId) };
  });
}

/** `turn:position` of a transcript entry. */
const isKey: IsKey = (text) => /^\d{1,9}:\d{1,9}$/.test(text);

type Row = Omit<TranscriptEntry, 'turn' | 'content'> & { turn: number | null; content: string };

const viewRow = (row: Row) => viewEntry({ ...row, content: contentOf(row.content) });

/** Oldest first by default. Queued messages, whose turn has not begun, are the newest. */
export async function listMessages(ctx: Context, input: Input<'listMessages'>): Promise<Result<'listMessages'>> {
  const { organizationId } = ctx;
  const { order = 'asc' } = input;
  const isAsc = order === 'asc';
  const request = pageRequest(`messages:${order}:${organizationId}:${input.sessionId}`, input, { isKey });
  const session = await readSession(ctx.db, organizationId, uuidOf('ses', input.sessionId));
  const { sessionId } = session;
  const [turn, position] = (request.after ?? '').split(':').map(Number);
  // One statement reads one snapshot. With two, a message that leaves the queue in between would be in neither part.
  const bytes = sql`octet_length(content)`;
  const limit = request.limit + 1;
  const transcriptOrder = isAsc ? sql`m.turn, m.position` : sql`m.turn desc, m.position desc`;
  const isAfterCursor =
    position === undefined ? empty : sql`and (m.turn, m.position) ${isAsc ? sql`>` : sql`<`} (${turn}, ${position})`;
  const ofTranscript = sql`
    select m.turn, m.position, m.message_id as "messageId", m.role, m.content::text as content, m.created_at as "createdAt", null as steer,
      ${isRejected(session)} as rejected
    from (${transcriptSources({ organizationId, sessionId })}) s
    cross join lateral (
      select * from messages m
      where m.organization_id = ${organizationId} and ${isOfSource} ${isAfterCursor}
      order by ${transcriptOrder} limit ${limit}) m
    order by ${transcriptOrder} limit ${limit}`;
  const isLastPage = isAsc
    ? sql`(select coalesce(max(found), 0) <= least(${request.limit}::int, count(*)) from page)`
    : sql`${position === undefined}::boolean`;
  const ofQueue = sql`
    select null::int, i.position, i.inbox_id, 'user', (i.body->'content')::text as content, i.created_at, i.body->>'steer' as steer,
      false as rejected
    from session_inbox i
    where i.organization_id = ${organizationId} and i.session_id = ${sessionId} and i.kind = 'message' and ${isLastPage}`;
  const [pageOrder, queueOrder] = isAsc
    ? [sql`turn, position`, sql`steer nulls last, position`]
    : [sql`turn desc, position desc`, sql`steer desc nulls first, position desc`];
  const rows = await ctx.db.query<Row>(sql`
    with page as (${firstBytes(ofTranscript, { order: pageOrder, bytes })}),
      queue as (${firstBytes(ofQueue, { order: queueOrder, bytes })})
    select * from page union all select * from queue
    order by ${isAsc ? sql`turn nulls last, ${queueOrder}` : sql`turn desc nulls first, ${queueOrder}`}`);
  const entries = rows.filter(({ turn }) => turn !== null);
  // They have no position in the transcript yet, and therefore no cursor: they are at the newer end of the last page.
  const queued = rows.filter((row) => row.turn === null);
  const page = pageOf(request, entries, (row) => `${row.turn}:${row.position}`, viewRow);
  const waiting = queued.map(viewRow);
  return { ...page, data: isAsc ? [...page.data, ...waiting] : [...waiting, ...page.data] };
}

/**
 * Whether the message `m` is a rejected response, or the service's message about one. Only the first message of a turn is a user's: further
 * ones are the service's, about the responses before them. A response whose turn failed with it is followed by none.
 */
function isRejected({ organizationId, turn, error }: SessionRow): Sql {
  const failedTurn = error?.code === 'output_invalid' ? turn : null;
  return sql`
    case m.role when 'user' then m.position > 0 when 'assistant' then coalesce((
      select x.role = 'user' from messages x
      where x.organization_id = ${organizationId} and x.session_id = m.session_id and x.turn = m.turn
        and x.position > m.position and x.role <> 'assistant'
      order by x.position limit 1), m.turn = ${failedTurn}::integer) end`;
}
