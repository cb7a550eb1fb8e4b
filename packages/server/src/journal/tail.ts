// The tail: text of sessions that stream, committed and shown, and not in segments yet.
//
// A segment for each delta of each session costs a row, and an update of the session's row. Between two appends of that kind (appender.ts),
// a node therefore writes the text of all its sessions of an organization into one row of `journal_tail`. A later append moves the text
// of a session into a segment: after ten to twenty seconds, or with the next transition. `next_seq` of a session is the end of its segments.
//
// Only a session's writer writes its text there. The statement locks the session's row and compares its epoch and `next_seq`, so that:
//
// - After another process has raised the epoch, or has locked the row, no text of the session is added. What it then reads by a new
//   statement is all there is. It moves that into a segment (`unfoldedOf`) before it appends anything of its own.
// - A statement that arrives late, after a retry or when the session has gone on, adds nothing, or text that is there already.
//
// `tail_node` and `tail_from` of the session's row name the rows: those of this node whose flush is later. They are null if the session
// has no text in the tail, which is the case whenever no node runs it.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Shards } from '../db/shards.ts';
import { textArray } from '../db/values.ts';
import type { JournalHead } from './append.ts';
import type { Item, Segment } from './segment.ts';

/** Text of a session that is after its segments. */
export interface Unfolded {
  items: Item[];
  /** How many of the last items were not shown, because the outcome of their commit is not known. */
  hidden: number;
}

/** `next_seq` of the session row: where its segments end. */
export function endOfSegments({ nextSeq, unfolded }: { nextSeq: number; unfolded?: Unfolded | undefined }): number {
  return nextSeq - (unfolded?.items.length ?? 0);
}

/** What a flush adds for a session. */
export interface TailEntry {
  head: JournalHead;
  seqTo: number;
  body: string;
}

/** Adds text of sessions of at most as many organizations as a statement may name, all of one shard. Returns the sessions whose text was added. */
export function flushStatement(nodeId: string, flush: number, entries: readonly TailEntry[], now: Date): Sql {
  const heads = entries.map(({ head }) => head);
  const organizations = [...new Set(heads.map(({ organizationId }) => organizationId))];
  return sql`
    with found as materialized (
      select x.organization_id, x.session_id, b.seq_to, b.body
      from unnest(${heads.map((h) => h.organizationId)}::uuid[], ${heads.map((h) => h.sessionId)}::uuid[],
        ${heads.map((h) => h.epoch)}::int[], ${heads.map((h) => h.turn)}::int[], ${heads.map(endOfSegments)}::bigint[],
        ${entries.map(({ seqTo }) => seqTo)}::bigint[], ${textArray(entries.map(({ body }) => body))}::text[])
        as b(org, sid, epoch, turn, stored, seq_to, body)
      cross join lateral (
        select x.organization_id, x.session_id from sessions x
        where x.organization_id = any(${organizations}::uuid[]) and x.organization_id = b.org and x.session_id = b.sid
          and x.epoch = b.epoch and x.turn = b.turn and x.next_seq = b.stored and x.tail_node = ${nodeId}::uuid
        for no key update of x skip locked) x)
    insert into journal_tail (organization_id, node_id, flush, session_ids, seq_tos, bodies, created_at)
    select f.organization_id, ${nodeId}::uuid, ${flush}::bigint, array_agg(f.session_id), array_agg(f.seq_to), array_agg(f.body),
      ${now}::timestamptz
    from found f where f.organization_id = any(${organizations}::uuid[]) group by f.organization_id
    returning journal_tail.session_ids as "sessionIds"`;
}

/** Text of a session in the tail, as it is read. */
export interface TailRow {
  turn: number;
  seqTo: number;
  body: string;
  createdAt: Date;
  nodeId: string;
  flush: number;
}

/** Up to which flush of a node the tail was read. */
export interface TailMark {
  nodeId: string;
  flush: number;
}

/** The rows of a session in their order, as segments that continue the journal after a position. A gap ends them: the rest is not there yet. */
export function segmentsOfTail(
  rows: readonly TailRow[],
  after: { turn: number; seq: number },
): { segments: Segment[]; mark: TailMark | undefined } {
  const segments: Segment[] = [];
  let mark: TailMark | undefined;
  let end = after.seq;
  for (const { turn, seqTo, body, createdAt, nodeId, flush } of rows) {
    const seqFrom = seqTo - (JSON.parse(body) as Item[]).length + 1;
    if (turn !== after.turn || seqFrom > end + 1) break;
    mark = { nodeId, flush };
    if (seqTo <= end) continue;
    segments.push({ turn, seqFrom, seqTo, body, createdAt });
    end = seqTo;
  }
  return { segments, mark };
}

/** A session whose row is locked, or whose epoch was raised. */
interface Taken {
  organizationId: string;
  sessionId: string;
  turn: number;
  nextSeq: number;
  tailNode: string | null;
  tailFrom: number | null;
}

/**
 * What these sessions have in the tail, by session; for a transition with which another process than their writer moves it to segments.
 * The statement must begin after the lock, or the commit that raised the epoch. All are of one shard, and of at most as many
 * organizations as a statement may name.
 */
export async function readTails(db: Pick<Db, 'query'>, taken: readonly Taken[]): Promise<Map<string, Item[]>> {
  const rows = await db.query<TailRow & { sessionId: string }>(sql`
    with h as (
      select * from unnest(${taken.map((one) => one.organizationId)}::uuid[], ${taken.map((one) => one.sessionId)}::uuid[],
        ${taken.map((one) => one.turn)}::int[], ${taken.map((one) => one.tailNode)}::uuid[],
        ${taken.map((one) => one.tailFrom)}::bigint[]) as h(org, sid, turn, node, after)),
    w as (select h.org, h.node, min(h.after) as after from h group by h.org, h.node),
    e as materialized (
      select t.organization_id, t.node_id, t.flush, t.created_at, u.session_id, u.seq_to, u.body
      from w join journal_tail t on t.organization_id = w.org and t.node_id = w.node and t.flush > w.after
      cross join lateral unnest(t.session_ids, t.seq_tos, t.bodies) as u(session_id, seq_to, body)
      where t.organization_id = any(${[...new Set(taken.map((one) => one.organizationId))]}::uuid[]))
    select e.session_id as "sessionId", h.turn, e.seq_to as "seqTo", e.body, e.created_at as "createdAt", e.node_id as "nodeId", e.flush
    from e join h on h.org = e.organization_id and h.node = e.node_id and h.sid = e.session_id and e.flush > h.after
    order by e.session_id, e.flush, e.seq_to`);
  const bySession = Map.groupBy(rows, ({ sessionId }) => sessionId);
  return new Map(
    taken.map(({ sessionId, turn, nextSeq }) => {
      const after = { turn, seq: nextSeq - 1 };
      const { segments } = segmentsOfTail(bySession.get(sessionId) ?? [], after);
      let end = after.seq;
      const items = segments.flatMap(({ seqFrom, seqTo, body }) => {
        const fresh = (JSON.parse(body) as Item[]).slice(end + 1 - seqFrom);
        end = seqTo;
        return fresh;
      });
      return [sessionId, items];
    }),
  );
}

/** Removes text of sessions that are deleted in the same transaction, after their rows were locked. */
export function deleteFromTail(organizationId: string, sessionIds: readonly string[]): Sql {
  const ids = [...sessionIds];
  const left = (column: Sql) => sql`
    array(select ${column} from unnest(t.session_ids, t.seq_tos, t.bodies) with ordinality as u(session_id, seq_to, body, n)
      where not u.session_id = any(${ids}::uuid[]) order by u.n)`;
  return sql`
    update journal_tail t set session_ids = ${left(sql`u.session_id`)}, seq_tos = ${left(sql`u.seq_to`)},
      bodies = ${left(sql`u.body`)}
    where t.organization_id = ${organizationId} and t.session_ids && ${ids}::uuid[]`;
}

/**
 * Deletes rows of this node, and of nodes without a row in `nodes`, all of whose text is in segments or belongs to deleted sessions. A
 * session that needs a row names it before the row is written, and until the text is in a segment: so in one snapshot, a row that no
 * session names is never needed again.
 */
export async function dropFolded(
  { db, shards }: { db: Pick<Db, 'query'>; shards: Pick<Shards, 'execute'> },
  nodeId: string,
): Promise<number> {
  const others = await db.query<{ nodeId: string }>(sql`
    select node_id as "nodeId" from nodes where node_id <> ${nodeId}`);
  const theirs = others.map((row) => row.nodeId);
  return shards.execute(
    'deleting text that is in segments',
    (within) => sql`
    delete from journal_tail t using (
      select o.organization_id, o.node_id, o.flush from journal_tail o
      left join (
        select n.organization_id, n.node_id, min(s.tail_from) as after
        from (
          select distinct r.organization_id, r.node_id, u.session_id from journal_tail r
          cross join lateral unnest(r.session_ids) as u(session_id)
          where not r.node_id = any(${theirs}::uuid[]) ${within(sql`r.organization_id`)}) n
        join sessions s on s.organization_id = n.organization_id and s.session_id = n.session_id and s.tail_node = n.node_id
        group by n.organization_id, n.node_id) d on d.organization_id = o.organization_id and d.node_id = o.node_id
      where not o.node_id = any(${theirs}::uuid[]) ${within(sql`o.organization_id`)}
        and (d.after is null or o.flush <= d.after)) dead
    where t.organization_id = dead.organization_id and t.node_id = dead.node_id and t.flush = dead.flush`,
  );
}
