// Records what a session waited for: a decision on an approval, the result of a client tool, or the end of a child session.
//
// While a node runs the session, the result goes into the inbox, and the node shows it. Otherwise it is shown here, under the
// row's lock: the session resumes once everything it waits for is there, and until then shows what is missing.
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { foldTail, writeTransition } from '../journal/append.ts';
import type { NewChunk } from '../journal/segment.ts';
import type { Platform } from '../platform.ts';
import { addToInbox, type InboxBody } from './inbox.ts';
import { readOperations, waitingForOf } from './operations.ts';
import type { SessionRow } from './session.ts';
import { resumedPatch, waitingPatch } from './status.ts';

/** Shows something about what the session waits for that does not change what it waits for. */
export async function showWhileWaiting(
  tx: Tx,
  ctx: Pick<Platform, 'clock' | 'live' | 'wake' | 'metrics'>,
  row: SessionRow,
  shown: readonly NewChunk[],
  forNode: InboxBody,
): Promise<void> {
  const now = ctx.clock.now();
  if (row.nodeId || row.stop) return void (await addToInbox(tx, row, forNode, { wake: ctx.wake, now }));
  await foldTail(ctx, tx, row, now);
  await writeTransition(ctx, tx, { ...row }, { runs: [{ turn: row.turn, items: [...shown] }], patch: [], now });
}

/** The caller has updated the operation; `shown` are the chunks that show the update. */
export async function recordAwaitedResult(
  tx: Tx,
  ctx: Pick<Platform, 'clock' | 'live' | 'wake' | 'metrics'>,
  row: SessionRow,
  shown: readonly NewChunk[],
  forWorker: InboxBody,
): Promise<SessionRow> {
  const now = ctx.clock.now();
  // A node that is about to stop the turn reads the inbox as well.
  if (row.nodeId || row.stop) {
    await addToInbox(tx, row, forWorker, { wake: ctx.wake, now });
    return row;
  }
  // A node that gave the session up after a failure may have left some.
  await foldTail(ctx, tx, row, now);
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
    // The step is offered to workers, but the service may have to run the call that is now approved.
    patch.push(sql`runnable_at = ${now}`);
  }
  await writeTransition(ctx, tx, { ...row }, { runs: [{ turn: row.turn, items }], patch, now });
  if (after.status === 'running') tx.afterCommit(() => ctx.wake.publish('runnable', row));
  after.nextSeq = row.nextSeq + items.length;
  return after;
}
