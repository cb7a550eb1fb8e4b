// Keeps files in PostgreSQL, in pieces of 1 MiB.
//
// A piece is written as soon as it has arrived, in a transaction of its own, so no transaction waits for a client. Only the last commit
// waits for the disk, which then has everything that was written before it. If the server crashed in between, pieces may be missing:
// they are counted after the last commit.
import sql from 'sql-template-tag';
import { DatabaseUnavailable, type Db } from '../db/db.ts';
import { createFairShare } from '../lib/fair-share.ts';
import { piecesOf } from './pieces.ts';
import type { FileStore } from './store.ts';

const PIECE_BYTES = 1024 * 1024;
/** A read returns at most this much at a time: it arrives as hexadecimal digits, and a client may be slow to take it. */
const READ_BYTES = 256 * 1024;
/**
 * How much is written at the same time: a piece of an organization, and four of all. More of them are no faster, because PostgreSQL's
 * processor is what they wait for, as every other request then does. Files that are smaller wait for the disk, four at a time.
 */
const WRITING_BYTES = { max: 4 * PIECE_BYTES, maxOfOrganization: PIECE_BYTES };
const LEAST_BYTES = PIECE_BYTES / 4;
/** At most this many of the node's connections to the database, which every other request needs too. */
const MAX_READING = 4;

export function createDatabaseStore(db: Pick<Db, 'query' | 'batch'>): FileStore {
  const writing = createFairShare(WRITING_BYTES);
  const reading = createFairShare({ max: MAX_READING });

  return {
    name: 'database',
    pieceBytes: PIECE_BYTES,

    async write({ organizationId, fileId }, content) {
      let position = 0;
      let total = 0;
      for await (const { bytes, isLast } of piecesOf(content, PIECE_BYTES)) {
        const leave = await writing.take(organizationId, Math.max(bytes.length, LEAST_BYTES));
        try {
          await db.batch([
            ...(isLast ? [] : [sql`set local synchronous_commit = off`]),
            sql`
              insert into file_pieces (organization_id, file_id, position, bytes)
              values (${organizationId}, ${fileId}, ${position}, ${bytes})`,
          ]);
        } finally {
          leave?.();
        }
        position += 1;
        total += bytes.length;
      }
      const [stored] = await db.query<{ pieces: number; total: number }>(sql`
        select count(*)::int as pieces, coalesce(sum(octet_length(p.bytes)), 0)::int as total from file_pieces p
        where p.organization_id = ${organizationId} and p.file_id = ${fileId}`);
      if (stored!.pieces !== position || stored!.total !== total) {
        throw new DatabaseUnavailable(new Error('it restarted while a file was written'));
      }
    },

    async *read({ organizationId, fileId }, { start, end }, signal) {
      for (let at = start; at < end; ) {
        const position = Math.floor(at / PIECE_BYTES);
        const from = at - position * PIECE_BYTES;
        const length = Math.min(end - at, PIECE_BYTES - from, READ_BYTES);
        const leave = await reading.take(organizationId, 1, signal);
        if (!leave) return;
        const [piece] = await db
          .query<{ bytes: Buffer }>(sql`
            select substring(p.bytes from ${from + 1}::int for ${length}::int) as bytes from file_pieces p
            where p.organization_id = ${organizationId} and p.file_id = ${fileId} and p.position = ${position}`)
          .finally(leave);
        if (piece?.bytes.length !== length) throw new Error('The content of a file is not there any more');
        yield piece.bytes;
        at += length;
      }
    },

    async remove({ organizationId, fileId }) {
      await db.query(sql`delete from file_pieces where organization_id = ${organizationId} and file_id = ${fileId}`);
    },
  };
}
