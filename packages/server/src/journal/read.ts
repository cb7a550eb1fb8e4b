// Reading the journal from the database: for the list call, the live stream and the dispatcher.
import { type ChunkType, type Envelope, type Input, longLists, type Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { notFound } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { withShortOutput } from '../lib/json/json-text.ts';
import {
  beginning,
  comparePositions,
  endOfJournal,
  formatCursor,
  invalidCursor,
  type Position,
  parseCursor,
} from './cursor.ts';
import { chunksOf, envelopeOf, type JournalOwner, type Segment, typeSet } from './segment.ts';
import { segmentsOfTail, type TailMark, type TailRow } from './tail.ts';

/** Where the text of `sessions s` in the tail ends; null if it has none. */
const endOfTail = (organizationId: string) => sql`(
  select max(u.seq_to) from journal_tail t
  cross join lateral unnest(t.session_ids, t.seq_tos) as u(session_id, seq_to)
  where t.organization_id = ${organizationId} and t.node_id = s.tail_node and t.flush > s.tail_from
    and u.session_id = s.session_id)`;

/** A session as readers of its journal need it: its owner, where the journal ends, and whether more can follow. */
export interface JournalInfo extends JournalOwner {
  organizationId: string;
  /** The position of the last chunk that is shown. */
  position: Position;
  ended: boolean;
  /** The node that runs it, as far as is known. */
  nodeId: string | null;
}

/** 404 if the organization has no such session. */
export async function readJournalInfo(
  db: Pick<Db, 'query'>,
  organizationId: string,
  sessionId: string,
): Promise<JournalInfo> {
  const [row] = await db.query<{
    agentId: string;
    environment: string;
    turn: number;
    nextSeq: number;
    ended: boolean;
    nodeId: string | null;
  }>(sql`
    select s.agent_id as "agentId", s.environment, s.turn, s.ended_at is not null as ended,
      case when s.tail_node is null then s.next_seq else greatest(s.next_seq, ${endOfTail(organizationId)} + 1) end as "nextSeq",
      s.node_id as "nodeId"
    from sessions s where s.organization_id = ${organizationId} and s.session_id = ${sessionId}`);
  if (!row) throw notFound('session');
  const { turn, nextSeq, ...rest } = row;
  return { organizationId, sessionId, ...rest, position: endOfJournal({ turn, nextSeq }) };
}

/** Segments that reach past a position, in order. */
export function readSegments(
  db: Pick<Db, 'query'>,
  organizationId: string,
  sessionId: string,
  after: Position,
  limit: number,
): Promise<Segment[]> {
  return db.query<Segment>(sql`
    select turn, seq_from as "seqFrom", seq_to as "seqTo", body, created_at as "createdAt" from segments
    where organization_id = ${organizationId} and session_id = ${sessionId}
      and (turn, seq_to) > (${after.turn}, ${after.seq})
    order by turn, seq_to limit ${limit}`);
}

// Results of tools can have a MiB each. A list call reads this much, plus at most one segment, into memory.
const MAX_READ_BYTES = 1024 * 1024;
// The size of a page of a list call. Pages of long chunks have fewer chunks.
const MAX_PAGE_CHARACTERS = 4 * 1024 * 1024;

/** What was read of a journal, as segments: also of the text in the tail, with the position up to which that was read. */
export interface JournalPart {
  segments: Segment[];
  /** Nothing follows them. */
  isEnd: boolean;
  mark: TailMark | undefined;
}

/**
 * The journal after a position, with the text in the tail: this and `readAfterEach` are what shows it to readers. Up to `maxBytes` of
 * segments plus at most one. One statement reads both, so text that an append moves is in one of them.
 */
export async function readSome(
  db: Pick<Db, 'query'>,
  organizationId: string,
  sessionId: string,
  after: Position,
  limit: number,
  maxBytes = MAX_READ_BYTES,
): Promise<JournalPart> {
  const rows = await db.query<JournalRow>(sql`
    select turn, seq_from as "seqFrom", seq_to as "seqTo", body, created_at as "createdAt", found,
      null::uuid as "nodeId", null::bigint as flush
    from (
      select s.*, count(*) over ()::integer as found,
        sum(octet_length(s.body)) over (order by s.turn, s.seq_to rows between unbounded preceding and 1 preceding) as before
      from (
        select turn, seq_from, seq_to, body, created_at from segments
        where organization_id = ${organizationId} and session_id = ${sessionId}
          and (turn, seq_to) > (${after.turn}, ${after.seq})
        order by turn, seq_to limit ${limit}) s) x
    where before is null or before < ${maxBytes}
    union all
    select s.turn, null, u.seq_to, u.body, t.created_at, null, t.node_id, t.flush from sessions s
    join journal_tail t on t.organization_id = s.organization_id and t.node_id = s.tail_node and t.flush > s.tail_from
    cross join lateral unnest(t.session_ids, t.seq_tos, t.bodies) as u(session_id, seq_to, body)
    where s.organization_id = ${organizationId} and s.session_id = ${sessionId} and u.session_id = s.session_id
      and (s.turn, u.seq_to) > (${after.turn}, ${after.seq})
    order by flush nulls first, turn, "seqTo"`);
  const stored = rows.filter(isSegment);
  const [first] = stored;
  return withTail(stored, first === undefined || (first.found < limit && stored.length === first.found), rows, after);
}

/** A row of a segment, or of text in the tail. */
type JournalRow = (Segment & { found: number; flush: null }) | (TailRow & { found: null });

function isSegment<Row extends JournalRow>(row: Row): row is Row & { flush: null } {
  return row.flush === null;
}

/** The tail follows the last segment. */
function withTail(
  segments: readonly Segment[],
  isEnd: boolean,
  rows: readonly JournalRow[],
  after: Position,
): JournalPart {
  const tail = rows.filter((row) => row.flush !== null);
  if (!isEnd || tail.length === 0) return { segments: [...segments], isEnd, mark: undefined };
  const last = segments.at(-1);
  const read = segmentsOfTail(tail, last ? { turn: last.turn, seq: last.seqTo } : after);
  return { segments: [...segments, ...read.segments], isEnd, mark: read.mark };
}

// The maximum for one session, so that each gets its share of what is read.
const MAX_EACH_SEGMENTS = 50;

/**
 * What follows these positions, read by one statement, with as much for each as fits. `isEnd`: nothing follows it. The positions are
 * of one shard, and of at most as many organizations as a statement may name.
 */
export async function readAfterEach(
  db: Pick<Db, 'query'>,
  places: readonly { organizationId: string; sessionId: string; after: Position; mark?: TailMark | undefined }[],
): Promise<JournalPart[]> {
  const organizations = places.map(({ organizationId }) => organizationId);
  const scope = [...new Set(organizations)];
  const sessionIds = places.map(({ sessionId }) => sessionId);
  // A row of the tail has the text of many sessions, so each is read once for all places.
  const rows = await db.query<JournalRow & { n: number }>(sql`
    with tails as materialized (
      select h.n::integer, s.organization_id, s.session_id, s.turn, s.tail_node, greatest(s.tail_from, case when s.tail_node = h.node then h.flush end) as after
      from unnest(${organizations}::uuid[], ${sessionIds}::uuid[], ${places.map(({ mark }) => mark?.nodeId ?? null)}::uuid[],
        ${places.map(({ mark }) => mark?.flush ?? null)}::bigint[]) with ordinality as h(org, sid, node, flush, n)
      cross join lateral (
        select x.organization_id, x.session_id, x.turn, x.tail_node, x.tail_from from sessions x
        where x.organization_id = any(${scope}::uuid[]) and x.organization_id = h.org and x.session_id = h.sid
          and x.tail_node is not null limit 1) s
      where exists (select 1 from journal_tail t where t.organization_id = any(${scope}::uuid[]))),
    nodes_of as (select organization_id, tail_node, min(after) as after from tails group by organization_id, tail_node),
    texts as materialized (
      select t.organization_id, t.node_id, t.flush, t.created_at, u.session_id, u.seq_to, u.body
      from nodes_of w
      join journal_tail t on t.organization_id = w.organization_id and t.node_id = w.tail_node and t.flush > w.after
      cross join lateral unnest(t.session_ids, t.seq_tos, t.bodies) as u(session_id, seq_to, body)
      where t.organization_id = any(${scope}::uuid[]) and u.session_id = any(${sessionIds}::uuid[]))
    select n, turn, seq_from as "seqFrom", seq_to as "seqTo", body, created_at as "createdAt", found,
      null::uuid as "nodeId", null::bigint as flush
    from (
      select h.n::integer, s.*, count(*) over ()::integer as found,
        sum(octet_length(s.body)) over (order by h.n, s.turn, s.seq_to rows between unbounded preceding and 1 preceding)
          as before
      from unnest(${organizations}::uuid[], ${sessionIds}::uuid[],
        ${places.map(({ after }) => after.turn)}::int[], ${places.map(({ after }) => after.seq)}::bigint[])
        with ordinality as h(org, sid, turn, seq, n)
      cross join lateral (
        select x.turn, x.seq_from, x.seq_to, x.body, x.created_at from segments x
        where x.organization_id = any(${scope}::uuid[]) and x.organization_id = h.org
          and x.session_id = h.sid and (x.turn, x.seq_to) > (h.turn, h.seq)
        order by x.turn, x.seq_to limit ${MAX_EACH_SEGMENTS}) s) x
    where before is null or before < ${MAX_READ_BYTES}
    union all
    select h.n, h.turn, null, e.seq_to, e.body, e.created_at, null, e.node_id, e.flush
    from tails h join texts e on e.organization_id = h.organization_id and e.session_id = h.session_id
      and e.node_id = h.tail_node and e.flush > h.after
    order by n, flush nulls first, turn, "seqTo"`);
  const found = Map.groupBy(rows, ({ n }) => n);
  const stored = rows.filter(isSegment);
  // Rows are removed from the end.
  const isCut = stored.length < (stored[0]?.found ?? 0);
  const lastWhole = isCut ? stored.at(-1)!.n - 1 : places.length;
  return places.map(({ after }, index) => {
    const ofPlace = found.get(index + 1) ?? [];
    const segments = ofPlace.filter(isSegment);
    const isEnd = index + 1 <= lastWhole && segments.length < MAX_EACH_SEGMENTS;
    return withTail(segments, isEnd, ofPlace, after);
  });
}

/**
 * The position of a reader's cursor; refused if it is damaged or ahead of the journal. A cursor does not name its session. With another
 * session it is a position in that session's journal, and shows nothing that the reader could not request anyway.
 */
export function positionAfter(cursor: string | undefined, head: JournalInfo): Position {
  if (cursor === undefined || cursor === '') return beginning;
  const position = parseCursor(cursor);
  if (comparePositions(position, head.position) > 0) throw invalidCursor('is ahead of the session');
  return position;
}

/** The `types` of a query, separated by commas. */
export function typesOf(query: { types?: string }): ReadonlySet<ChunkType> | undefined {
  return query.types === undefined ? undefined : typeSet(query.types.split(',') as ChunkType[]);
}

/** Envelopes after a cursor, oldest first. `limit` counts chunks and may split an envelope. Pages of long chunks are shorter. */
export async function listChunks(ctx: Context, input: Input<'listChunks'>): Promise<Result<'listChunks'>> {
  const { limit = longLists.default } = input;
  const head = await readJournalInfo(ctx.db, ctx.organizationId, uuidOf('ses', input.sessionId));
  const types = typesOf(input);
  let after = positionAfter(input.cursor, head);
  let room = limit;
  let shownCharacters = 0;
  const data: Envelope[] = [];
  while (room > 0 && shownCharacters < MAX_PAGE_CHARACTERS) {
    const { segments, isEnd } = await ctx.live.throughGate(
      ctx.organizationId,
      () => readSome(ctx.db, ctx.organizationId, head.sessionId, after, limit),
      ctx.signal,
    );
    for (const segment of segments) {
      const chunks = chunksOf(segment, after, types);
      const shown = chunks.slice(0, room).map(withShortOutput);
      // If the page ends within a segment, the cursor is that of the last chunk in it; otherwise the whole segment was read.
      after = shown.length < chunks.length ? positionOf(shown.at(-1)!) : { turn: segment.turn, seq: segment.seqTo };
      room -= shown.length;
      if (shown.length > 0) shownCharacters += segment.body.length;
      if (shown.length > 0) data.push(envelopeOf(head, after, segment.createdAt, shown));
      if (room === 0) break;
    }
    if (isEnd) break;
  }
  const isBeginning = comparePositions(after, beginning) === 0;
  return {
    data,
    page: {
      hasMore: comparePositions(after, head.position) < 0,
      nextCursor: isBeginning ? (input.cursor ?? '') : formatCursor(after),
    },
  };
}

function positionOf({ turn, seq }: Position): Position {
  return { turn, seq };
}
