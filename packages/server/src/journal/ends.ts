// Where the segments of sessions end, for the poll of their streams.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { JournalInfo } from './read.ts';

/** Where the segments of a session end. */
export interface SegmentsEnd {
  sessionId: string;
  turn: number;
  nextSeq: number;
  nodeId: string | null;
  /** Whether there may be text in the tail. */
  hasTail: boolean;
}

/** Sessions that were deleted are left out. All are of one shard. */
export function readEnds(
  db: Pick<Db, 'query'>,
  sessions: readonly Pick<JournalInfo, 'organizationId' | 'sessionId'>[],
): Promise<SegmentsEnd[]> {
  const organizations = sessions.map(({ organizationId }) => organizationId);
  return db.query<SegmentsEnd>(sql`
    select h.sid as "sessionId", s.turn, s.next_seq as "nextSeq", s.node_id as "nodeId",
      s.tail_node is not null as "hasTail"
    from unnest(${organizations}::uuid[], ${sessions.map(({ sessionId }) => sessionId)}::uuid[]) as h(org, sid)
    cross join lateral (
      select x.turn, x.next_seq, x.node_id, x.tail_node from sessions x
      where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
        and x.session_id = h.sid
      limit 1) s`);
}
