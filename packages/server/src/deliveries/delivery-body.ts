// Builds the bytes of a stored delivery from the journal.
import type { Db } from '../db/db.ts';
import { comparePositions } from '../journal/cursor.ts';
import { readSome } from '../journal/read.ts';
import type { JournalOwner, Segment } from '../journal/segment.ts';
import { type DeliveryContent, maxBodyBytes, maxChunks, rebuildBody } from './batch.ts';

/** `read`: the segments that were read already. Throws `JournalGone` if the journal does not contain the whole delivery. */
export async function readBody(
  db: Pick<Db, 'query'>,
  organizationId: string,
  owner: JournalOwner,
  content: DeliveryContent,
  read: readonly Segment[] = [],
): Promise<Buffer> {
  const segments = [...read];
  for (;;) {
    const last = segments.at(-1);
    const after = last ? { turn: last.turn, seq: last.seqTo } : content.from;
    if (comparePositions(after, content.to) >= 0) break;
    const more = await readSome(db, organizationId, owner.sessionId, after, maxChunks, maxBodyBytes);
    if (more.segments.length === 0) break;
    segments.push(...more.segments);
  }
  return rebuildBody(owner, content, segments);
}
