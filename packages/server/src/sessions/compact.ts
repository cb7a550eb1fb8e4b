// Compacting a session because a caller asks for it. A session whose turns become too long for its model compacts itself.
//
// The compaction is a turn of its own, without a message: it has a place in the journal, the timeline and the usage, survives a crash,
// can be interrupted and, if it fails, retried. Messages that arrive meanwhile have their turns after it.
import type { Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { nextVersion } from '../agents/agents.ts';
import { readDefinition } from '../agents/read-definition.ts';
import type { Tx } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { isOfSource, transcriptSources } from '../session-rows/inherited.ts';
import { insertOperation, newCompaction } from '../session-rows/operations.ts';
import { lockSession, requireOpen, type SessionRow, sessionEvent, viewSession } from '../session-rows/session.ts';
import { running, runOnIdle, runPatch } from './begin-turn.ts';
import { requirePrice } from './budget.ts';

/**
 * Replaces everything but the first message by a summary. 409 `session_ended`, `session_busy` unless it is idle, `conflict` if there is
 * nothing to summarize or no model that could, `agent_archived`, 422 `budget_invalid`.
 */
export async function compactSession(ctx: Context, input: Input<'compactSession'>): Promise<Result<'compactSession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    requireOpen(row);
    if (row.status !== 'idle') {
      const why = 'It compacts itself if it has to. Otherwise, ask for it when the session is idle.';
      throw new ApiError('session_busy', `The session is ${row.status}. ${why}`);
    }
    const { organizationId, agentId } = row;
    const version = await nextVersion(tx, row);
    const { model } = await readDefinition(tx, organizationId, agentId, version);
    if (model.provider === 'worker' && !model.compaction)
      throw new ApiError(
        'conflict',
        'The agent has no model that could write a summary. Name one in model.compaction.',
      );
    if (!(await hasMessages(tx, row)))
      throw new ApiError('conflict', 'The session has no messages that a summary could replace.');
    await requirePrice(ctx, tx, { organizationId, agentId, version }, row.budget);

    const now = ctx.clock.now();
    const turn = row.turn + 1;
    const items = [running];
    const operation = { ...newCompaction(turn, 1, []), fromSeq: items.length + 1, agentVersion: version };
    const traceParent = ctx.traceParent ?? null;
    const begun = {
      turn,
      run: { turn, items },
      patch: runPatch(version, traceParent, now),
      statements: [
        insertOperation(row, operation, now),
        recordEvent(ctx, now, { type: 'session.compaction_requested', ...sessionEvent(row) }),
      ],
      traceParent,
      agentVersion: version,
      operations: [operation],
    };
    return { session: viewSession(await runOnIdle(tx, ctx, row, begun, now)) };
  });
}

/** Besides the first one, and those that a summary replaces already. */
async function hasMessages(tx: Tx, row: SessionRow): Promise<boolean> {
  const { organizationId, sessionId } = row;
  const found = await tx.execute(sql`
    with newest as (
      select c.from_turn, c.from_position from compactions c
      where c.organization_id = ${organizationId} and c.session_id = ${sessionId}
      order by c.from_turn desc, c.from_position desc limit 1)
    select 1 from (${transcriptSources(row)}) s
    join messages m on m.organization_id = ${organizationId} and ${isOfSource}
    where (m.turn, m.position) > (1, 0)
      and (m.turn, m.position) >= (coalesce((select from_turn from newest), 0), coalesce((select from_position from newest), 0))
    limit 1`);
  return found > 0;
}
