// Something that a Session waited for has come: an approval's decision or a client tool's result.
//
// While a worker holds the Session, it is left in the inbox and the worker shows it. Else the API call shows it here, under
// the row's lock: the Session goes on once all that it waits for has come, and says until then what is missing.
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { writeTransition } from '../journal/append.ts';
import type { NewChunk } from '../journal/segment.ts';
import type { Context } from '../lib/context.ts';
import { type InboxBody, leaveInInbox } from './inbox.ts';
import { readOperations, waitingForOf } from './operations.ts';
import type { SessionRow } from './session.ts';

/** The operation itself is already as it is to be; `shown` is the chunk that says so. */
export async function awaitedCame(
  tx: Tx,
  ctx: Context,
  row: SessionRow,
  shown: NewChunk,
  forWorker: InboxBody,
): Promise<SessionRow> {
  const now = ctx.clock.now();
  if (row.workerId) {
    await leaveInInbox(tx, row, forWorker, { wake: ctx.wake, now });
    return row;
  }
  const after: SessionRow = { ...row, updatedAt: now };
  const items: NewChunk[] = [shown];
  if (row.status === 'waiting') {
    const operations = await readOperations(tx, row.organizationId, row.sessionId, row.turn);
    after.waitingFor = waitingForOf(operations);
    after.status = after.waitingFor ? 'waiting' : 'running';
    items.push({ type: 'session.status', status: after.status, waitingFor: after.waitingFor });
  }
  await writeTransition(
    ctx,
    tx,
    { ...row },
    {
      runs: [{ turn: row.turn, items }],
      patch: [
        sql`status = ${after.status}`,
        sql`waiting_for = ${after.waitingFor && JSON.stringify(after.waitingFor)}`,
        sql`runnable_at = ${now}`,
      ],
      now,
    },
  );
  if (after.status === 'running') tx.afterCommit(() => ctx.wake.publish('runnable', row.sessionId));
  after.nextSeq = row.nextSeq + items.length;
  return after;
}
