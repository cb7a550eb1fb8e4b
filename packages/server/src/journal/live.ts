// The live stream of a Session: what is committed from a cursor on, for as long as more can follow.
//
// A reader subscribes first, then reads from its cursor, then drains what came meanwhile and skips what it has seen. What is
// committed on this node is handed to it directly; each hand-over names the position before it, and a reader that sees a gap
// reads the journal again. So does one that was too slow (what waits for it is bounded), and one that the poll finds behind:
// the net under lost wake-ups. What was committed on another node is read once for all readers of its Session, together with what
// was committed to other Sessions meanwhile, and then handed to them as a commit of this node is.
import type { ChunkType, Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { onceAborted } from '../lib/aborted.ts';
import type { Context } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { comparePositions, formatCursor, type Position } from './cursor.ts';
import { type Head, positionAfter, readAfterEach, readHead, readSome, typesOf } from './read.ts';
import { chunksOf, envelopeOf, type Segment } from './segment.ts';
import { createShared } from './shared.ts';

/** An envelope as text, with the cursor that it carries. */
export interface StreamEvent {
  cursor: string;
  json: string;
}

export interface JournalStream {
  /** Ends after the terminal status, or when the signal is aborted. */
  read(signal: AbortSignal): AsyncGenerator<StreamEvent>;
}

export interface Live {
  /** Called after each commit on this node; `previous` is where the journal ended before. */
  committed(sessionId: string, previous: Position, segments: readonly Segment[]): void;
  follow(head: Head, after: Position, types: ReadonlySet<ChunkType> | undefined): JournalStream;
  /** How many streams are open on this node. */
  readers(): number;
  start(): void;
  stop(): Promise<void>;
}

/** A commit on its way to readers; its text is made once for all of those who want every type. */
interface Handover {
  previous: Position;
  segment: Segment;
  event?: StreamEvent | undefined;
}

interface Reader {
  head: Head;
  at: Position;
  queue: Handover[];
  queuedBytes: number;
  /** The queue does not tell all: read the journal. */
  behind: boolean;
  notify: () => void;
}

const POLL_MS = 1_000;
const READ_SEGMENTS = 200;
// A reader that catches up holds a page of this much while it waits for room to write, and so much waits for one that is slow;
// past it the reader reads the journal when it is ready.
const MAX_HELD_BYTES = 64 * 1024;
// Of each hand-over beside its text.
const HANDOVER_BYTES = 256;

/** The answer of the stream route: undefined where nothing can follow the cursor. Throws 404 and `invalid_cursor`. */
export async function streamSession(ctx: Context, input: Input<'streamSession'>): Promise<JournalStream | undefined> {
  const head = await readHead(ctx.db, ctx.organizationId, uuidOf('ses', input.sessionId));
  const after = positionAfter(input.cursor, head);
  if (head.ended && comparePositions(after, head.position) === 0) return undefined;
  return ctx.live.follow(head, after, typesOf(input));
}

export function createLive({
  db,
  shards,
  wake,
  clock,
  log,
}: Pick<Platform, 'db' | 'shards' | 'wake' | 'clock' | 'log'>): Live {
  const readersOf = new Map<string, Set<Reader>>();
  const longEvents = createShared<StreamEvent | undefined>();
  const stopping = new AbortController();
  /** Sessions that other nodes committed to, and whose readers have not been told. */
  const hinted = new Set<string>();
  let fetching: Promise<void> | undefined;
  let polling: Promise<void> | undefined;
  let unsubscribe = () => {};

  function committed(sessionId: string, previous: Position, segments: readonly Segment[]): void {
    const readers = readersOf.get(sessionId);
    if (!readers) return;
    let before = previous;
    for (const segment of segments) {
      const handover: Handover = { previous: before, segment };
      for (const reader of readers) {
        if (reader.behind) continue;
        reader.queue.push(handover);
        reader.queuedBytes += HANDOVER_BYTES + segment.body.length;
        if (reader.queue.length > 1 && reader.queuedBytes > MAX_HELD_BYTES) markBehind(reader);
      }
      before = { turn: segment.turn, seq: segment.seqTo };
    }
    for (const reader of readers) reader.notify();
  }

  function markBehind(reader: Reader): void {
    reader.behind = true;
    reader.queue = [];
    reader.queuedBytes = 0;
    reader.notify();
  }

  // ── What other nodes commit ────────────────────────────────────────────────────────────────────────────────────────

  /** Reads what was committed elsewhere, once for all readers of the session and together with what else was. */
  function fetchSoon(sessionId: string): void {
    if (!readersOf.has(sessionId)) return;
    hinted.add(sessionId);
    fetching ??= fetchAll().finally(() => {
      fetching = undefined;
    });
  }

  async function fetchAll(): Promise<void> {
    while (hinted.size > 0 && !stopping.signal.aborted) {
      const places = [...hinted].flatMap((sessionId) => {
        const following = [...(readersOf.get(sessionId) ?? [])].filter(({ behind }) => !behind);
        const [first] = following;
        return first ? { ...first.head, after: following.map(tailOf).reduce(earlier) } : [];
      });
      hinted.clear();
      const failures = await shards.each(places, ({ organizationId }) => organizationId, fetch);
      for (const { error } of failures)
        log.warn({ err: error }, 'could not read what other nodes committed; trying again');
    }
  }

  async function fetch(places: readonly (Head & { after: Position })[]): Promise<void> {
    for (const [index, { segments, isEnd }] of (await readAfterEach(db, places)).entries()) {
      const { sessionId, after } = places[index]!;
      committed(sessionId, after, segments);
      if (!isEnd) hinted.add(sessionId);
    }
  }

  /** Nothing more can come of it. */
  function endDeleted(sessionId: string): void {
    for (const reader of readersOf.get(sessionId) ?? []) {
      reader.head = { ...reader.head, ended: true, position: reader.at };
      reader.notify();
    }
  }

  async function* read(
    head: Head,
    after: Position,
    types: ReadonlySet<ChunkType> | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<StreamEvent> {
    let woken = Promise.withResolvers<void>();
    const reader: Reader = { head, at: after, queue: [], queuedBytes: 0, behind: true, notify: () => woken.resolve() };
    const readers = readersOf.get(head.sessionId) ?? new Set();
    readersOf.set(head.sessionId, readers.add(reader));
    const forget = onceAborted(signal, reader.notify);
    try {
      while (!signal.aborted) {
        woken = Promise.withResolvers();
        if (reader.behind) {
          reader.behind = false;
          yield* catchUp(reader);
        }
        const handovers = reader.queue;
        reader.queue = [];
        reader.queuedBytes = 0;
        for (const handover of handovers) {
          if (reader.behind) break;
          if (comparePositions(handover.previous, reader.at) > 0) {
            reader.behind = true;
          } else {
            const event = pass(reader, handover.segment, (segment, from) => {
              const isWhole = comparePositions({ turn: segment.turn, seq: segment.seqFrom - 1 }, from) >= 0;
              if (types || !isWhole) return eventOf(segment, from);
              handover.event ??= eventOf(segment, from);
              return handover.event;
            });
            if (event) yield event;
          }
        }
        if (ended(reader)) return;
        if (!reader.behind && reader.queue.length === 0) await woken.promise;
      }
    } finally {
      forget();
      readers.delete(reader);
      if (readers.size === 0) readersOf.delete(head.sessionId);
    }

    async function* catchUp(of: Reader): AsyncGenerator<StreamEvent> {
      while (!signal.aborted) {
        const { organizationId, sessionId } = head;
        const { segments, isEnd } = await readSome(db, organizationId, sessionId, of.at, READ_SEGMENTS, MAX_HELD_BYTES);
        // Taken out one by one: what was shown is not held while its reader is waited for.
        while (segments.length > 0) {
          const isLong = segments[0]!.body.length > MAX_HELD_BYTES;
          if (isLong) {
            yield* passLong(of, segments.shift()!);
          } else {
            const event = pass(of, segments.shift()!, eventOf);
            if (event) yield event;
          }
        }
        if (isEnd) return;
      }
    }

    /** Its text is held once for all readers of the Session that wait for room to write it. */
    function* passLong(of: Reader, segment: Segment): Generator<StreamEvent> {
      const { turn, seqTo } = segment;
      const key = JSON.stringify([head.sessionId, of.at, turn, seqTo, types ? [...types] : null]);
      const event = longEvents.hold(key, () => eventOf(segment, of.at));
      try {
        pass(of, segment, () => event);
        if (event) yield event;
      } finally {
        longEvents.release(key);
      }
    }

    /** Moves the reader past a segment. Returns what it is shown of it. */
    function pass(
      of: Reader,
      segment: Segment,
      makeEvent: (segment: Segment, from: Position) => StreamEvent | undefined,
    ): StreamEvent | undefined {
      const end = { turn: segment.turn, seq: segment.seqTo };
      if (comparePositions(end, of.at) <= 0) return undefined;
      const event = makeEvent(segment, of.at);
      of.at = end;
      if (isTerminal(segment)) of.head = { ...of.head, ended: true, position: end };
      return event;
    }

    function eventOf(segment: Segment, from: Position): StreamEvent | undefined {
      const chunks = chunksOf(segment, from, types);
      if (chunks.length === 0) return undefined;
      const end = { turn: segment.turn, seq: segment.seqTo };
      return { cursor: formatCursor(end), json: JSON.stringify(envelopeOf(head, end, segment.createdAt, chunks)) };
    }
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(POLL_MS, stopping.signal).catch(() => {});
      await look();
    }
  }

  /** Finds the readers that are behind without having heard of it. */
  async function look(): Promise<void> {
    const heads = [...readersOf.values()].flatMap(([reader]) => (reader ? [reader.head] : []));
    if (heads.length === 0 || stopping.signal.aborted) return;
    const failures = await shards.each(heads, ({ organizationId }) => organizationId, lookAt);
    for (const { error } of failures) log.warn({ err: error }, 'could not look for lost wake-ups of streams');
  }

  async function lookAt(heads: readonly Head[]): Promise<void> {
    const organizations = heads.map(({ organizationId }) => organizationId);
    const rows = await db.query<{ sessionId: string; turn: number; nextSeq: number }>(sql`
      select h.sid as "sessionId", s.turn, s.next_seq as "nextSeq"
      from unnest(${organizations}::uuid[], ${heads.map(({ sessionId }) => sessionId)}::uuid[]) as h(org, sid)
      cross join lateral (
        select x.turn, x.next_seq from sessions x
        where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
          and x.session_id = h.sid
        limit 1) s`);
    for (const { sessionId, turn, nextSeq } of rows) {
      for (const reader of readersOf.get(sessionId) ?? []) {
        const waiting = reader.queue.length > 0 || reader.behind;
        if (!waiting && comparePositions(reader.at, { turn, seq: nextSeq - 1 }) < 0) markBehind(reader);
      }
    }
    const found = new Set(rows.map(({ sessionId }) => sessionId));
    for (const { sessionId } of heads) if (!found.has(sessionId)) endDeleted(sessionId);
  }

  return {
    committed,
    follow: (head, after, types) => ({ read: (signal) => read(head, after, types, signal) }),
    readers: () => [...readersOf.values()].reduce((sum, { size }) => sum + size, 0),
    start() {
      unsubscribe = wake.subscribe('journal', (hint, here) => {
        if (here) return;
        if (hint) fetchSoon(hint.sessionId);
        else void look();
      });
      polling = poll();
    },
    async stop() {
      unsubscribe();
      stopping.abort();
      await polling;
      await fetching;
    },
  };
}

/** Where what the reader has or is about to be handed ends. */
function tailOf({ queue, at }: Reader): Position {
  const last = queue.at(-1)?.segment;
  return last ? { turn: last.turn, seq: last.seqTo } : at;
}

function earlier(a: Position, b: Position): Position {
  return comparePositions(a, b) <= 0 ? a : b;
}

function ended(reader: Reader): boolean {
  return reader.head.ended && comparePositions(reader.at, reader.head.position) >= 0;
}

/** The terminal status is a Session's last chunk (api.md section 6). */
function isTerminal(segment: Segment): boolean {
  if (!segment.body.includes('"session.status"')) return false;
  const last = (JSON.parse(segment.body) as unknown[]).at(-1) as { type?: string; status?: string };
  return last.type === 'session.status' && ['completed', 'failed', 'cancelled'].includes(last.status ?? '');
}
