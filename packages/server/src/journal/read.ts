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

/** A session as readers of its journal need it: its owner, where the journal ends, and whether more can follow. */
export interface JournalInfo extends JournalOwner {
  organizationId: string;
  /** The position of the last chunk. */
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
    select agent_id as "agentId", environment, turn, next_seq as "nextSeq", ended_at is not null as ended,
      node_id as "nodeId"
    from sessions where organization_id = ${organizationId} and session_id = ${sessionId}`);
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

/** The same, up to `maxBytes` plus at most one segment. `isEnd`: nothing follows them. */
export async function readSome(
  db: Pick<Db, 'query'>,
  organizationId: string,
  sessionId: string,
  after: Position,
  limit: number,
  maxBytes = MAX_READ_BYTES,
): Promise<{ segments: Segment[]; isEnd: boolean }> {
  const rows = await db.query<Segment & { found: number }>(sql`
    select turn, seq_from as "seqFrom", seq_to as "seqTo", body, created_at as "createdAt", found
    from (
      select s.*, count(*) over ()::integer as found,
        sum(octet_length(s.body)) over (order by s.turn, s.seq_to rows between unbounded preceding and 1 preceding) as before
      from (
        select turn, seq_from, seq_to, body, created_at from segments
        where organization_id = ${organizationId} and session_id = ${sessionId}
          and (turn, seq_to) > (${after.turn}, ${after.seq})
        order by turn, seq_to limit ${limit}) s) x
    where before is null or before < ${maxBytes}
    order by turn, seq_to`);
  const [first] = rows;
  return { segments: rows, isEnd: first === undefined || (first.found < limit && rows.length === first.found) };
}

// The maximum for one session, so that each gets its share of what is read.
const MAX_EACH_SEGMENTS = 50;

/**
 * What follows these positions, read by one statement, with as much for each as fits. `isEnd`: nothing follows it. The positions are
 * of one shard, and of at most as many organizations as a statement may name.
 */
export async function readAfterEach(
  db: Pick<Db, 'query'>,
  places: readonly { organizationId: string; sessionId: string; after: Position }[],
): Promise<{ segments: Segment[]; isEnd: boolean }[]> {
  const organizations = places.map(({ organizationId }) => organizationId);
  const rows = await db.query<Segment & { n: number; found: number }>(sql`
    select n, turn, seq_from as "seqFrom", seq_to as "seqTo", body, created_at as "createdAt", found
    from (
      select h.n::integer, s.*, count(*) over ()::integer as found,
        sum(octet_length(s.body)) over (order by h.n, s.turn, s.seq_to rows between unbounded preceding and 1 preceding)
          as before
      from unnest(${organizations}::uuid[], ${places.map(({ sessionId }) => sessionId)}::uuid[],
        ${places.map(({ after }) => after.turn)}::int[], ${places.map(({ after }) => after.seq)}::bigint[])
        with ordinality as h(org, sid, turn, seq, n)
      cross join lateral (
        select x.turn, x.seq_from, x.seq_to, x.body, x.created_at from segments x
        where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
          and x.session_id = h.sid and (x.turn, x.seq_to) > (h.turn, h.seq)
        order by x.turn, x.seq_to limit ${MAX_EACH_SEGMENTS}) s) x
    where before is null or before < ${MAX_READ_BYTES}
    order by n, turn, seq_to`);
  const found = Map.groupBy(rows, ({ n }) => n);
  // Rows are removed from the end.
  const isCut = rows.length < (rows[0]?.found ?? 0);
  const lastWhole = isCut ? rows.at(-1)!.n - 1 : places.length;
  return places.map((_, index) => {
    const segments = found.get(index + 1) ?? [];
    return { segments, isEnd: index + 1 <= lastWhole && segments.length < MAX_EACH_SEGMENTS };
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
