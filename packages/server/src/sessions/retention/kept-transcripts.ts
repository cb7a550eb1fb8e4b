// The messages of deleted sessions. Those that forks inherit stay; the others are deleted.
//
// kept_transcripts has a row for each deleted session that has messages left. The transaction that deletes a session deletes its messages
// too, if no fork inherits them and there are not too many (`deleteUninherited`); otherwise it inserts the row. It also
// marks the rows of the deleted sessions that it inherited from, because it may have been the last of their forks. Both are `due`
// until `trimTranscripts` has deleted what no fork inherits, a thousand messages a statement. After a crash the next pass continues.
//
// Deleting an origin therefore writes to none of its forks, however many there are. A fork that is being created locks the row of its
// origin, so the origin is deleted before the fork is created or after it. Sessions that are deleted lock the rows of the sessions that
// they inherit from as well: of a fork and its origin that are deleted at once, the second sees what the first did.
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Queryable, Tx } from '../../db/db.ts';
import { deleteInBatches } from '../../db/delete-in-batches.ts';
import { allOfIt, isIn, type ShareNow } from '../../session-rows/share.ts';

const BATCH = 200;
/** Batches of a thousand messages in the transaction that deletes their sessions. */
const MAX_BATCHES = 5;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/**
 * For the transaction that deletes these sessions, before it deletes their rows. Returns the transcripts to be
 * trimmed after that.
 */
export async function releaseTranscripts(
  tx: Tx,
  organizationId: string,
  sessionIds: readonly string[],
): Promise<string[]> {
  const ids = [...sessionIds];
  // Locks are always taken in this order: the sessions, those that they inherit from, kept transcripts.
  await tx.query(sql`
    select 1 from sessions s where s.organization_id = ${organizationId} and s.session_id = any(${ids}::uuid[])
    order by s.session_id for update`);
  const rows = await tx.query<{ sourceId: string }>(sql`
    select distinct i.source_session_id as "sourceId" from inherited_turns i
    where i.organization_id = ${organizationId} and i.session_id = any(${ids}::uuid[])`);
  const sourceIds = rows.map(({ sourceId }) => sourceId).filter((id) => !sessionIds.includes(id));
  const [, , kept] = await Promise.all([
    tx.query(sql`
      select 1 from sessions s where s.organization_id = ${organizationId} and s.session_id = any(${sourceIds}::uuid[])
      order by s.session_id for key share`),
    tx.query(lockKept(organizationId, sourceIds)),
    tx.query<{ sessionId: string }>(sql`
      update kept_transcripts k set due = true
      where k.organization_id = ${organizationId} and k.session_id = any(${sourceIds}::uuid[])
      returning k.session_id as "sessionId"`),
    tx.query(sql`
      insert into kept_transcripts (organization_id, session_id, due)
      select s.organization_id, s.session_id, true from sessions s
      where s.organization_id = ${organizationId} and s.session_id = any(${ids}::uuid[]) and exists (
        select 1 from messages m where m.organization_id = ${organizationId} and m.session_id = s.session_id)`),
  ]);
  return [...ids, ...kept.map(({ sessionId }) => sessionId)];
}

/**
 * Deletes the messages of sessions that no fork inherits, up to a few thousand. For the transaction that deletes the sessions and has locked
 * them: a fork that is being created locks its origin, so none is added meanwhile.
 */
export async function deleteUninherited(
  tx: Tx,
  organizationId: string,
  sessionIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const inherited = await tx.query<{ sessionId: string }>(sql`
    select distinct i.source_session_id as "sessionId" from inherited_turns i
    where i.organization_id = ${organizationId} and i.source_session_id = any(${[...sessionIds]}::uuid[])`);
  const kept = new Set(inherited.map(({ sessionId }) => sessionId));
  const ids = sessionIds.filter((id) => !kept.has(id));
  const batch = {
    find: (limit: Sql) => sql`
      select x.session_id, x.turn, x.position from messages x
      where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}`,
    drop: dropMessages(organizationId),
  };
  await deleteInBatches(tx, signal, batch, MAX_BATCHES);
}

function dropMessages(organizationId: string): Sql {
  return sql`
    delete from messages m using old
    where m.organization_id = ${organizationId} and m.session_id = old.session_id and m.turn = old.turn
      and m.position = old.position`;
}

/** Trims all of a share that are due, once: those that are marked again behind its position are left to the next pass. */
export async function trimDueTranscripts(
  db: Db,
  organizationId: string,
  signal: AbortSignal,
  shareNow: ShareNow = allOfIt,
): Promise<void> {
  let after = BEFORE_ALL;
  for (let found = BATCH; found === BATCH && !signal.aborted; ) {
    const due = await db.query<{ sessionId: string }>(sql`
      select k.session_id as "sessionId" from kept_transcripts k
      where k.organization_id = ${organizationId} and k.due and k.session_id > ${after} and ${isIn(await shareNow())}
      order by k.session_id limit ${BATCH}`);
    found = due.length;
    const ids = due.map(({ sessionId }) => sessionId);
    after = ids.at(-1) ?? after;
    await deleteNotInherited(db, organizationId, ids, signal);
    if (!signal.aborted) await db.transaction((tx) => settle(tx, organizationId, ids));
  }
}

/** Trims these in the transaction that released them. */
export async function trimTranscripts(tx: Tx, organizationId: string, sessionIds: readonly string[]): Promise<void> {
  await deleteNotInherited(tx, organizationId, sessionIds, new AbortController().signal);
  await settle(tx, organizationId, sessionIds);
}

function lockKept(organizationId: string, sessionIds: readonly string[]): Sql {
  return sql`
    select 1 from kept_transcripts k
    where k.organization_id = ${organizationId} and k.session_id = any(${[...sessionIds]}::uuid[])
    order by k.session_id for update`;
}

/** Where the messages of the transcript `k` end that forks inherit: no row if there are no forks. */
function inheritedEnd(organizationId: string): Sql {
  return sql`
    select i.until_turn as turn, i.until_position as position from inherited_turns i
    where i.organization_id = ${organizationId} and i.source_session_id = k.session_id
    order by i.until_turn desc, i.until_position desc limit 1`;
}

function deleteNotInherited(
  db: Queryable,
  organizationId: string,
  sessionIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  return deleteInBatches(db, signal, {
    find: (limit) => sql`
      select x.session_id, x.turn, x.position from kept_transcripts k
      left join lateral (${inheritedEnd(organizationId)}) e on true
      cross join lateral (
        select m.session_id, m.turn, m.position from messages m
        where m.organization_id = ${organizationId} and m.session_id = k.session_id
          and (m.turn, m.position) > (coalesce(e.turn, -1), coalesce(e.position, -1)) ${limit}) x
      where k.organization_id = ${organizationId} and k.session_id = any(${[...sessionIds]}::uuid[]) ${limit}`,
    drop: dropMessages(organizationId),
  });
}

/** After the deletion. A transcript of which a fork was deleted in the meantime stays due. */
async function settle(tx: Tx, organizationId: string, sessionIds: readonly string[]): Promise<void> {
  // A statement of its own: those that follow see what a transaction did that had locked the rows before.
  await tx.query(lockKept(organizationId, sessionIds));
  const trimmed = await tx.query<{ sessionId: string; isInherited: boolean }>(sql`
    select k.session_id as "sessionId", e.turn is not null as "isInherited" from kept_transcripts k
    left join lateral (${inheritedEnd(organizationId)}) e on true
    left join lateral (
      select m.turn from messages m
      where m.organization_id = ${organizationId} and m.session_id = k.session_id
        and (m.turn, m.position) > (coalesce(e.turn, -1), coalesce(e.position, -1)) limit 1) rest on true
    where k.organization_id = ${organizationId} and k.session_id = any(${[...sessionIds]}::uuid[]) and rest.turn is null`);
  const [inherited, unused] = [true, false].map((is) =>
    trimmed.filter(({ isInherited }) => isInherited === is).map(({ sessionId }) => sessionId),
  );
  await Promise.all([
    tx.query(sql`
      update kept_transcripts k set due = false
      where k.organization_id = ${organizationId} and k.session_id = any(${inherited}::uuid[])`),
    tx.query(sql`
      delete from kept_transcripts k
      where k.organization_id = ${organizationId} and k.session_id = any(${unused}::uuid[])`),
  ]);
}
