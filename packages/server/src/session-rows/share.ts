// Which of the sessions that all nodes find at the same time this node claims first, and which of the old ones it deletes. When a node dies or stops, the others find its
// sessions within a second, and each would claim as many as it has room for: the first to look would get nearly all. So each claims
// those at first whose id falls to it. What is still there a moment later is for all: its node has no room, hangs, or has died too.
//
// Nodes that see different sets of nodes may claim the same session; its epoch decides then.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';

/** How long sessions are left to the node whose share they are. */
export const SHARE_MS = 1_500;

/** One of `parts` equal parts of the sessions, counted from 0. */
export interface Share {
  part: number;
  parts: number;
}

export const EVERYTHING: Share = { part: 0, parts: 1 };

/** The share of this node at this moment: nodes come and go. */
export type ShareNow = () => Promise<Share>;

export const allOfIt: ShareNow = async () => EVERYTHING;

/** The share of this node among the nodes that run sessions and have a lease. */
export async function readShare(db: Pick<Db, 'query'>, nodeId: string): Promise<Share> {
  const [share] = await db.query<Share>(sql`
    select count(*) filter (where node_id < ${nodeId})::integer as part, count(*)::integer + 1 as parts
    from nodes where runs and lease_expires_at >= now() and node_id <> ${nodeId}`);
  return share!;
}

/** For a query of one table with a `session_id`. The last bytes of an id are random. */
export function isIn({ part, parts }: Share): Sql {
  return sql`(get_byte(uuid_send(session_id), 14) * 256 + get_byte(uuid_send(session_id), 15)) % ${parts}::integer
    = ${part}::integer`;
}
