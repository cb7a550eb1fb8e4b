// The index of sessions by metadata: session_metadata has a number for each pair of key and value. It is written when the
// metadata is written, and not by other changes of the session.
import { createHash } from 'node:crypto';
import type { Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';

interface Owner {
  organizationId: string;
  sessionId: string;
}

/** The number of a pair, a signed 64-bit hash; `value` is the value as text. */
export function pairOf(key: string, value: string): string {
  return createHash('sha256')
    .update(JSON.stringify([key, value]))
    .digest()
    .readBigInt64BE()
    .toString();
}

function pairsOf(metadata: Session['metadata']): string[] {
  return Object.entries(metadata).flatMap(([key, value]) => (value === null ? [] : [pairOf(key, String(value))]));
}

/** For the transaction that inserts the session or changes its metadata, after that statement. */
export function insertPairs({ organizationId, sessionId }: Owner, metadata: Session['metadata']): Sql[] {
  const pairs = pairsOf(metadata);
  if (pairs.length === 0) return [];
  return [
    sql`
      insert into session_metadata (organization_id, pair, session_id)
      select s.organization_id, p.pair, s.session_id from sessions s cross join unnest(${pairs}::bigint[]) p(pair)
      where s.organization_id = ${organizationId} and s.session_id = ${sessionId}`,
  ];
}

/** For a transaction that has locked the sessions' rows, so their metadata can't have changed since it was read. */
export function deletePairs(
  organizationId: string,
  sessions: readonly { sessionId: string; metadata: Session['metadata'] }[],
): Sql[] {
  const pairs = sessions.flatMap(({ sessionId, metadata }) => pairsOf(metadata).map((pair) => ({ pair, sessionId })));
  if (pairs.length === 0) return [];
  return [
    sql`
      delete from session_metadata m
      using unnest(${pairs.map(({ pair }) => pair)}::bigint[], ${pairs.map(({ sessionId }) => sessionId)}::uuid[]) p(pair, session_id)
      where m.organization_id = ${organizationId} and m.pair = p.pair and m.session_id = p.session_id`,
  ];
}
