// What sessions are found by in session_metadata: a number for each pair of key and value. It is written with the metadata, and
// never when a session changes otherwise.
import { createHash } from 'node:crypto';
import type { Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';

interface Owner {
  organizationId: string;
  sessionId: string;
}

/** Of a value as text: the number (64 bits, signed) that stands for the pair. */
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

/** For the transaction that inserts the session or changes its metadata, after that. */
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

/** For a transaction that holds the sessions' rows, so that their metadata is what it was read as. */
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
