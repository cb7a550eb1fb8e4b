// The live stream of a session: what is committed from a cursor on, for as long as more can follow.
//
// A reader is only a position. What follows it is looked up in a cache that all readers of the node share (recent.ts), in parts of at
// most 47 KiB, whenever the reader has room for a part. Segments that are not in the cache, because they are old or the reader was slow,
// are read from the journal, once for all readers at that position. A reader that takes nothing therefore costs only the buffer of its
// connection, however long the chunks are.
//
// A commit on this node puts its segments into the cache. Segments that another node committed are read once for all readers of their
// session, together with those of other sessions, and put there too. The poll finds commits whose wake-up was lost.
//
// Readers that are not at the end of their journal go through a gate (lib/fair-share.ts). It limits how many read the journal or get a
// part in one turn of the event loop, so many readers at once can neither use up the connection pool nor block the event loop.
import type { Input } from '@signalbox/contract';
import { OVER } from '../lib/aborted.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { createFairShare } from '../lib/fair-share.ts';
import { uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { beginning, comparePositions, endOfJournal, formatCursor, type Position } from './cursor.ts';
import { readEnds } from './ends.ts';
import { type JournalInfo, positionAfter, readAfterEach, readJournalInfo, readSome, typesOf } from './read.ts';
import { createRecent } from './recent.ts';
import type { Segment } from './segment.ts';
import type { FollowOptions, JournalStream, StreamEnd, StreamPart, StreamReader } from './stream.ts';
import type { TailMark } from './tail.ts';
import { cursorPart, partOf, textOf } from './text.ts';

export interface Live {
  /** Called after the commit with which this node began to run a session: only this node writes to its journal, which ends here. */
  startsHere(sessionId: string, end: Position): void;
  /** Called after each commit on this node; `previous` is where the journal ended before. */
  committed(sessionId: string, previous: Position, segments: readonly Segment[]): void;
  follow(head: JournalInfo, after: Position, options?: FollowOptions): JournalStream;
  /**
   * Runs a read of a journal once the gate admits the organization; never in a transaction, which would keep a connection while it
   * waits. Throws 503 `unavailable` if the signal is aborted first.
   */
  throughGate<T>(organizationId: string, read: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** How many streams are open on this node. */
  readers(): number;
  start(): void;
  stop(): Promise<void>;
}

/** A reader that may be able to take more. */
interface Waker {
  wake(): void;
}

/** A session that has readers on this node. */
interface Feed {
  readonly head: JournalInfo;
  readonly readers: Set<Waker>;
  /** Where its journal ends, as far as this node knows. */
  end: Position;
  /** The journal has been read to its end since the feed was created, so no earlier segment is missing. */
  isKnown: boolean;
  /** Nothing will follow the end. */
  isOver: boolean;
  /** Up to where the tail was read. What follows the end is after it. */
  mark?: TailMark | undefined;
  /** This node committed to it since the last poll, so no other node does. */
  isWrittenHere?: boolean;
}

const POLL_MS = 1_000;
const READ_SEGMENTS = 200;
// How much of the journal is read at once: this, plus at most one segment.
const READ_BYTES = 64 * 1024;
// Fewer than the connections of the pool, so that some are left for everything else.
const MAX_AT_ONCE = 8;

/** The response of the stream route: undefined if nothing can follow the cursor. Throws 404 and `invalid_cursor`. */
export async function streamSession(ctx: Context, input: Input<'streamSession'>): Promise<JournalStream | undefined> {
  const { organizationId } = ctx;
  const sessionId = uuidOf('ses', input.sessionId);
  const head = await ctx.live.throughGate(
    organizationId,
    () => readJournalInfo(ctx.db, organizationId, sessionId),
    ctx.signal,
  );
  const after = positionAfter(input.cursor, head);
  if (head.ended && comparePositions(after, head.position) === 0) return undefined;
  return ctx.live.follow(head, after, { types: typesOf(input), forToken: ctx.token !== undefined });
}

export function createLive({ db, shards, wake, clock }: Pick<Platform, 'db' | 'shards' | 'wake' | 'clock'>): Live {
  const feeds = new Map<string, Feed>();
  const recent = createRecent();
  const gate = createFairShare({ max: MAX_AT_ONCE });
  /** Reads of the journal in progress, by session and position. */
  const pages = new Map<string, Promise<boolean>>();
  const stopping = new AbortController();
  /** Readers that can take more, until the current code has run: a commit does not wait for its readers. */
  const woken = new Set<Waker>();
  // The ends of journals whose sessions this node has just started, until the next commit or poll: their first readers need not look
  // there. The poll also finds what another node commits if it takes the session over.
  const started = new Map<string, string>();
  /** Sessions that other nodes committed to, and whose segments have to be read. */
  const hinted = new Set<string>();
  let fetching: Promise<void> | undefined;
  let polling: Promise<void> | undefined;
  let unsubscribe = () => {};

  function committed(sessionId: string, previous: Position, segments: readonly Segment[]): void {
    const feed = feeds.get(sessionId);
    if (!feed) return void started.delete(sessionId);
    feed.isWrittenHere = true;
    keep(feed, previous, segments);
  }

  function keep(feed: Feed, after: Position, segments: readonly Segment[]): void {
    let at = after;
    for (const segment of segments) {
      const { isTerminal } = recent.put(feed.head.sessionId, at, segment);
      at = { turn: segment.turn, seq: segment.seqTo };
      if (isTerminal) feed.isOver = true;
    }
    moveEnd(feed, at);
  }

  function moveEnd(feed: Feed, end: Position): void {
    if (comparePositions(end, feed.end) <= 0) return;
    feed.end = end;
    for (const reader of feed.readers) wakeSoon(reader);
  }

  // ── A reader ───────────────────────────────────────────────────────────────────────────────────────────────────────

  class Reader implements StreamReader {
    readonly #feed: Feed;
    readonly #onMore: () => void;
    readonly options: FollowOptions;
    at: Position;
    /** Where the last envelope ended. Chunks of other types can follow it. */
    shown: Position;
    /** The position in a long text's bytes: everything before it has been returned. */
    offset = 0;
    /** It has read up to where it ends. */
    isDone = false;
    /** The name of the texts for its types and its view. */
    readonly name: string;
    /** How many more bytes it may get before it waits at the gate again, where `#waiting` is set. */
    allowance = READ_BYTES;
    #waiting: AbortController | undefined;
    #isClosed = false;
    end: StreamEnd | undefined;

    constructor(feed: Feed, after: Position, options: FollowOptions, onMore: () => void) {
      this.#feed = feed;
      this.at = after;
      this.shown = after;
      this.options = options;
      this.#onMore = onMore;
      this.name = (options.forToken ? 'token ' : '') + (options.types ? [...options.types].sort().join() : '');
      feed.readers.add(this);
    }

    take(): StreamPart | undefined {
      if (this.end || this.#waiting || this.#isClosed) return undefined;
      const part = nextPart(this.#feed, this);
      if (part) return part;
      if (this.isDone) {
        this.end = {};
      } else if (!isAtEnd(this.#feed, this)) {
        void this.#waitAtGate();
      } else if (this.#feed.isOver) {
        this.end = {};
        // So that a client does not resume before chunks that it did not ask for.
        if (comparePositions(this.at, this.shown) > 0) return cursorPart(this.at);
      } else {
        this.allowance = READ_BYTES;
      }
      return undefined;
    }

    async #waitAtGate(): Promise<void> {
      this.#waiting = new AbortController();
      try {
        const isThere = await waitAtGate(this.#feed, this, this.#waiting.signal);
        // It was deleted.
        if (!isThere && this.offset > 0) this.end = {};
      } catch (error) {
        this.end = { error };
      }
      this.#waiting = undefined;
      this.wake();
    }

    wake(): void {
      if (!this.#isClosed && !this.#waiting) this.#onMore();
    }

    close(): void {
      if (this.#isClosed) return;
      this.#isClosed = true;
      this.#waiting?.abort(OVER);
      const { readers, head } = this.#feed;
      readers.delete(this);
      if (readers.size === 0 && feeds.get(head.sessionId) === this.#feed) feeds.delete(head.sessionId);
    }
  }

  function wakeSoon(reader: Waker): void {
    if (woken.size === 0) queueMicrotask(wakeAll);
    woken.add(reader);
  }

  function wakeAll(): void {
    const readers = [...woken];
    woken.clear();
    for (const reader of readers) reader.wake();
  }

  function feedOf(head: JournalInfo): Feed {
    const known = feeds.get(head.sessionId);
    const isKnown = head.ended || started.get(head.sessionId) === formatCursor(head.position);
    const feed = known ?? { head, readers: new Set(), end: head.position, isKnown, isOver: head.ended };
    feeds.set(head.sessionId, feed);
    moveEnd(feed, head.position);
    feed.isOver ||= head.ended;
    if (head.nodeId !== null) wake.follow(head, head.nodeId);
    return feed;
  }

  function isAtEnd(feed: Feed, { at, offset }: Reader): boolean {
    return offset === 0 && (feed.isKnown || feed.isOver) && comparePositions(at, feed.end) >= 0;
  }

  /** Moves the reader past what it returns. Undefined if the next segment is not in memory, or the reader has to wait at the gate. */
  function nextPart(feed: Feed, reader: Reader): StreamPart | undefined {
    while (reader.allowance > 0 && !reader.isDone) {
      const following = recent.get(feed.head.sessionId, reader.at);
      if (!following) return undefined;
      const { segment } = following;
      const text = recent.text(following, reader.name, () => textOf(feed.head, segment, reader.at, reader.options));
      const part = text && partOf(text, reader.offset);
      reader.allowance -= part ? part.json.length : segment.body.length;
      if (!part || part.isLast) {
        reader.at = { turn: segment.turn, seq: segment.seqTo };
        reader.offset = 0;
        if (part) reader.shown = reader.at;
        if (reader.options.untilIdle && following.endsWork) reader.isDone = true;
      } else {
        reader.offset += part.json.length;
      }
      if (part) return part;
    }
    return undefined;
  }

  /** Once admitted by the gate, reads what follows the reader if it is not in memory. False if nothing follows. */
  async function waitAtGate(feed: Feed, reader: Reader, signal: AbortSignal): Promise<boolean> {
    const leave = await gate.take(feed.head.organizationId, 1, signal);
    if (!leave) return false;
    try {
      const isThere = recent.get(feed.head.sessionId, reader.at) !== undefined || (await readPage(feed, reader.at));
      reader.allowance = READ_BYTES;
      return isThere;
    } finally {
      // It stays admitted for the part that it takes now.
      setImmediate(leave);
    }
  }

  async function inPlace<T>(organizationId: string, act: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const leave = await gate.take(organizationId, 1, signal);
    // If the client has left instead, it does not see this error.
    if (!leave) throw new ApiError('unavailable', 'The service is shutting down.', { retryAfterSeconds: 1 });
    try {
      return await act();
    } finally {
      leave();
    }
  }

  /** Once for all readers at the same position. False if nothing follows it. */
  function readPage(feed: Feed, after: Position): Promise<boolean> {
    const key = `${feed.head.sessionId} ${formatCursor(after)}`;
    const page = pages.get(key) ?? load(feed, after).finally(() => pages.delete(key));
    pages.set(key, page);
    return page;
  }

  async function load(feed: Feed, after: Position): Promise<boolean> {
    const { organizationId, sessionId } = feed.head;
    const { end } = feed;
    const { segments, isEnd } = await readSome(db, organizationId, sessionId, after, READ_SEGMENTS, READ_BYTES);
    keep(feed, after, segments);
    if (isEnd) feed.isKnown = true;
    // A position that nothing follows is the end, even if the cursor has another form.
    if (segments.length === 0 && feed.end === end) feed.end = after;
    return segments.length > 0;
  }

  // ── What other nodes commit ────────────────────────────────────────────────────────────────────────────────────────

  /** Reads what other nodes committed, once for all readers of a session, and in one batch with other sessions. */
  function fetchSoon(sessionId: string, writer: string): void {
    const feed = feeds.get(sessionId);
    if (!feed) return;
    wake.follow(feed.head, writer);
    hinted.add(sessionId);
    fetching ??= fetchAll().finally(() => {
      fetching = undefined;
    });
  }

  async function fetchAll(): Promise<void> {
    while (hinted.size > 0 && !stopping.signal.aborted) {
      const places = [...hinted].flatMap((sessionId) => {
        const feed = feeds.get(sessionId);
        return feed ? { ...feed.head, after: feed.end, mark: feed.mark } : [];
      });
      hinted.clear();
      const what = 'reading commits of other nodes';
      await shards.forEachShardWithTimeout(what, places, ({ organizationId }) => organizationId, fetch);
    }
  }

  async function fetch(places: readonly (JournalInfo & Pick<Feed, 'mark'> & { after: Position })[]): Promise<void> {
    for (const [index, { segments, isEnd, mark }] of (await readAfterEach(db, places)).entries()) {
      const { sessionId, after } = places[index]!;
      const feed = feeds.get(sessionId);
      if (!feed) {
        started.delete(sessionId);
        continue;
      }
      keep(feed, after, segments);
      if (mark) feed.mark = mark;
      if (!isEnd) hinted.add(sessionId);
    }
  }

  /** Ends the streams of a session that was deleted, or that lost chunks which they may have shown. */
  function endFeed(feed: Feed): void {
    feeds.delete(feed.head.sessionId);
    recent.forget(feed.head.sessionId);
    feed.isOver = true;
    feed.end = beginning;
    for (const reader of feed.readers) wakeSoon(reader);
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(POLL_MS, stopping.signal).catch(() => {});
      recent.age();
      started.clear();
      await look();
    }
  }

  /** Finds readers that are behind because a wake-up was lost, and journals that are shorter than before. */
  async function look(): Promise<void> {
    const known = [...feeds.values()].map((feed) => ({ feed, end: feed.end }));
    if (known.length === 0 || stopping.signal.aborted) return;
    const what = 'polling for missed stream wake-ups';
    await shards.forEachShardWithTimeout(what, known, ({ feed }) => feed.head.organizationId, lookAt);
  }

  /** `end`: where the journal ended before the look. It ends earlier only in a database that lost commits. */
  async function lookAt(known: readonly { feed: Feed; end: Position }[]): Promise<void> {
    const heads = known.map(({ feed }) => feed.head);
    const found = new Map((await readEnds(db, heads)).map((row) => [row.sessionId, row]));
    for (const { feed, end } of known) {
      const row = found.get(feed.head.sessionId);
      const isBehind = row && comparePositions({ turn: row.turn, seq: row.nextSeq - 1 }, end) < 0;
      // Text in the tail is after its segments.
      if (!row || (isBehind && (!row.hasTail || row.turn !== end.turn))) endFeed(feed);
      else moveEnd(feed, endOfJournal(row));
      if (row?.nodeId) wake.follow(feed.head, row.nodeId);
      // A hint of it may have been lost.
      if (row?.nodeId && row.hasTail && !feed.isWrittenHere) fetchSoon(feed.head.sessionId, row.nodeId);
      feed.isWrittenHere = false;
    }
  }

  return {
    startsHere: (sessionId, end) => void started.set(sessionId, formatCursor(end)),
    committed,
    throughGate: inPlace,
    follow: (head, after, options = {}) => ({ open: (onMore) => new Reader(feedOf(head), after, options, onMore) }),
    readers: () => [...feeds.values()].reduce((sum, { readers }) => sum + readers.size, 0),
    start() {
      unsubscribe = wake.subscribe('journal', (hint, from) => {
        if (!hint) void look();
        else if (from !== undefined) fetchSoon(hint.sessionId, from);
      });
      polling = poll();
    },
    async stop() {
      unsubscribe();
      stopping.abort(OVER);
      await Promise.all([polling, fetching]);
    },
  };
}
