// Something that a Session waited for has come: an approval's decision or a client tool's result.
//
// While a worker holds the Session, it is left in the inbox and the worker shows it. Else the API call shows it here, under
// the row's lock: the Session goes on once all that it waits for has come, and says until then what is missing.
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../db/db.ts';
import { writeTransition } from '../../journal/append.ts';
import type { NewChunk } from '../../journal/segment.ts';
import type { Platform } from '../../platform.ts';
import { addToInbox, type InboxBody } from './inbox.ts';
import { readOperations, waitingForOf } from './operations.ts';
import type { SessionRow } from './session.ts';
import { resumedPatch, waitingPatch } from './status.ts';

/** The operation itself is already as it is to be; `shown` are the chunks that say so. */
export async function recordAwaitedResult(
  tx: Tx,
  ctx: Pick<Platform, 'clock' | 'live' | 'wake' | 'metrics'>,
  row: SessionRow,
  shown: readonly NewChunk[],
  forWorker: InboxBody,
): Promise<SessionRow> {
  const now = ctx.clock.now();
  // Whoever comes to stop the turn finds it there as well.
  if (row.nodeId || row.stop) {
    await addToInbox(tx, row, forWorker, { wake: ctx.wake, now });
    return row;
  }
  const after: SessionRow = { ...row, updatedAt: now };
  const items: NewChunk[] = [...shown];
  const patch: Sql[] = [];
  if (row.status === 'waiting') {
    const operations = await readOperations(tx, row.organizationId, row.sessionId, row.turn);
    after.waitingFor = waitingForOf(operations);
    after.status = after.waitingFor ? 'waiting' : 'running';
    items.push({ type: 'session.status', status: after.status, waitingFor: after.waitingFor });
    patch.push(
      ...(after.waitingFor ? waitingPatch(after.waitingFor, row.turnLeftMs) : resumedPatch(row.turnLeftMs, now)),
    );
  } else {
    // Offered to the integrator's program: what came may be for the service to run, beside what is offered.
    patch.push(sql`runnable_at = ${now}`);
  }
  await writeTransition(ctx, tx, { ...row }, { runs: [{ turn: row.turn, items }], patch, now });
  if (after.status === 'running') tx.afterCommit(() => ctx.wake.publish('runnable', row));
  after.nextSeq = row.nextSeq + items.length;
  return after;
}
