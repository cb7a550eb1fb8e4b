/**
 * Follows a session while its page is open.
 *
 * - The **transcript** is read from its end: first the newest page, then new messages when there may be some, and earlier ones on
 *   demand. Turns are shown whole: if a page starts within a turn, its messages are held back until the start of the turn is read.
 * - The **journal** is followed by cursor from the start of the current turn: each chunk arrives once and in order, across lost
 *   connections and restarts of the service of any length.
 * - A turn is shown from its chunks until it is over and the transcript was read after that. Then its chunks are dropped.
 *
 * A turn that failed or was cancelled keeps its chunks: it may be retried, and the transcript does not have all that was shown of a
 * cancelled one.
 */
import { type Chunk, type Message, type Session, type Signalbox, SignalboxError } from '@signalbox/client';
import { applyToTurn, isAfter, newTurn, type TurnState } from '@signalbox/client/conversation';
import { voidableChunkTypes } from '@signalbox/contract';
import { type Entry, entriesOf, entryOf, userEntry } from './conversation.ts';

export interface Followed {
  entries: readonly Entry[];
  /** The transcript has messages before the first entry. */
  hasOlder: boolean;
  isReadingOlder: boolean;
  /** The error of the last read of earlier messages. */
  olderError: unknown;
  /** Messages whose turn has not started. */
  queued: readonly Entry[];
  /** The keys of texts that are still streaming. */
  growing: ReadonlySet<string>;
  connection: 'connecting' | 'open' | 'lost' | 'over';
  /** The transcript and the journal have been read up to the opening of the page. */
  isCaughtUp: boolean;
  /** The cursor of the last chunk. */
  cursor: string | null;
  /** Counts changes other than text: statuses, calls, approvals, ends of turns. */
  news: number;
  /** A permanent error, such as a sign-out. */
  error: unknown;
}

/** How the page waits. Tests need not wait. */
export interface Pacing {
  /** Combines changes that arrive together into one update. */
  gather(draw: () => void): void;
  /** Waits before a retry; ends early when the signal aborts. */
  pause(signal: AbortSignal): Promise<void>;
}

// A few screens full, and no more turns than the first page of the timeline has (session-view.tsx), which shows why each ended.
const PAGE_ROWS = 50;
// Usually there are few new messages.
const NEWS_ROWS = 20;
// What a response shows while it is written. Nothing else on the page changes with it.
const writes: ReadonlySet<string> = new Set([...voidableChunkTypes, 'message.reset']);
const unfinished = new Set(['running', 'waiting', 'failed', 'cancelled']);

export class Following {
  readonly #client: Signalbox;
  readonly #sessionId: string;
  readonly #pacing: Pacing;
  readonly #listeners = new Set<() => void>();
  #over = new AbortController();

  /** Oldest first, whole turns. */
  #messages: Message[] = [];
  /** The end of a turn whose start has not been read. */
  #cutOff: Message[] = [];
  #queued: Message[] = [];
  /** The cursor of earlier messages; null if there are none, undefined before the first read. */
  #olderCursor: string | null | undefined;
  #readingOlder: Promise<void> | undefined;
  #olderError: unknown;
  /** The current read. A call during a read waits for the next one. */
  #reading: Promise<void> | undefined;
  #readNext: Promise<void> | undefined;

  /** Turns from this one on are shown from their chunks. */
  #liveFrom: number;
  readonly #turns = new Map<number, TurnState>();
  #cursor: string | null;
  readonly #target: string | null;
  #connection: Followed['connection'] = 'connecting';
  #news = 0;
  #error: unknown;

  #settled: { count: number; liveFrom: number; entries: Entry[] } = { count: 0, liveFrom: 0, entries: [] };
  #isGathering = false;
  #snapshot: Followed;

  /** `session` may be out of date: later changes are in the journal. */
  constructor(client: Signalbox, session: Session, pacing: Pacing) {
    this.#client = client;
    this.#sessionId = session.sessionId;
    this.#pacing = pacing;
    const { turn, cursor, forkedFrom, status, stopReason } = session;
    // Turns that a fork inherits are not in its journal.
    const isShownByChunks = turn > (forkedFrom?.turn ?? 0) && (unfinished.has(status) || stopReason === 'error');
    this.#liveFrom = isShownByChunks ? turn : turn + 1;
    this.#cursor = isShownByChunks ? `turn_${turn}:seq_0` : cursor;
    this.#target = cursor;
    this.#snapshot = this.#draw();
  }

  readonly snapshot = (): Followed => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Starts or resumes. Returns a function that stops it. */
  start(): () => void {
    const over = new AbortController();
    this.#over = over;
    void this.refresh();
    void this.#followJournal(over.signal);
    return () => over.abort();
  }

  /** Reads new messages of the transcript. Resolves after a read that started after this call. */
  refresh(): Promise<void> {
    if (!this.#reading) {
      this.#reading = this.#readTranscript(this.#over.signal).finally(() => {
        this.#reading = undefined;
      });
      return this.#reading;
    }
    this.#readNext ??= this.#reading.then(() => {
      this.#readNext = undefined;
      return this.refresh();
    });
    return this.#readNext;
  }

  async #readTranscript(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#messages.length === 0) await this.#readPageBefore(undefined, signal);
        else await this.#readNews(signal);
        return this.#changed();
      } catch (error) {
        if (!(await this.#bears(error, signal))) return;
      }
    }
  }

  /** Reads a page of messages before the first entry. If that fails, `olderError` is the error. A call during a read waits for it. */
  readOlder(): Promise<void> {
    const cursor = this.#olderCursor;
    if (!cursor) return Promise.resolve();
    this.#readingOlder ??= this.#readOlder(cursor).finally(() => {
      this.#readingOlder = undefined;
      this.#changed();
    });
    return this.#readingOlder;
  }

  async #readOlder(cursor: string): Promise<void> {
    const { signal } = this.#over;
    this.#olderError = undefined;
    this.#changed();
    try {
      await this.#readPageBefore(cursor, signal);
    } catch (error) {
      if (!signal.aborted) this.#olderError = error;
    }
  }

  /** Without a cursor, reads the newest page. Reads several pages if a turn is longer than one. */
  async #readPageBefore(cursor: string | undefined, signal: AbortSignal): Promise<void> {
    let cutOff = cursor === undefined ? [] : this.#cutOff;
    for (let from = cursor; ; ) {
      const page = await this.#messagesBefore(from, PAGE_ROWS, signal);
      if (from === undefined) this.#queued = page.queued;
      from = page.nextCursor;
      const read = [...page.settled, ...cutOff];
      const beginning = page.hasMore ? read.findIndex(({ turn }) => turn !== read[0]!.turn) : 0;
      cutOff = beginning === -1 ? read : read.slice(0, beginning);
      if (beginning === -1) continue;
      this.#messages = [...read.slice(beginning), ...this.#messages];
      this.#cutOff = cutOff;
      this.#olderCursor = page.hasMore ? from : null;
      return;
    }
  }

  /** Reads from the newest message back to the last known one. */
  async #readNews(signal: AbortSignal): Promise<void> {
    const known = this.#messages.at(-1)!.messageId;
    let news: Message[] = [];
    for (let from: string | undefined; ; ) {
      const page = await this.#messagesBefore(from, NEWS_ROWS, signal);
      if (from === undefined) this.#queued = page.queued;
      const index = page.settled.findIndex(({ messageId }) => messageId === known);
      news = [...page.settled.slice(index + 1), ...news];
      if (index !== -1 || !page.hasMore) break;
      from = page.nextCursor;
    }
    this.#messages = [...this.#messages, ...news];
  }

  async #messagesBefore(cursor: string | undefined, limit: number, signal: AbortSignal) {
    const request = { order: 'desc' as const, limit, ...(cursor && { cursor }) };
    const { data, hasMore, nextCursor } = await this.#client.sessions.messages(this.#sessionId, request, { signal });
    const all = data.toReversed();
    return {
      settled: all.filter(({ turn }) => turn !== null),
      queued: all.filter(({ turn }) => turn === null),
      hasMore,
      nextCursor,
    };
  }

  async #followJournal(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const onConnection = (state: 'open' | 'lost') => {
          // Changes that are not in the journal may have been missed.
          if (state === 'open' && this.#connection === 'lost') this.#news += 1;
          this.#connection = state;
          this.#changed();
        };
        const { sessions } = this.#client;
        const stream = sessions.stream(this.#sessionId, { cursor: this.#cursor, onConnection }, { signal });
        for await (const { chunks } of stream) {
          for (const chunk of chunks) this.#add(chunk);
          this.#cursor = stream.cursor;
          this.#changed();
        }
        this.#connection = 'over';
        this.#news += 1;
        this.#changed();
        return void this.refresh();
      } catch (error) {
        if (!(await this.#bears(error, signal))) return;
      }
    }
  }

  /** After a temporary error, waits and returns true; keeps any other error. */
  async #bears(error: unknown, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const status = error instanceof SignalboxError ? error.status : -1;
    if (status === 0 || status === 429 || status >= 500) {
      this.#connection = 'lost';
      this.#changed();
      await this.#pacing.pause(signal);
      return true;
    }
    this.#error = error;
    this.#changed();
    return false;
  }

  #add(chunk: Chunk): void {
    if (chunk.turn >= this.#liveFrom) {
      const turn = this.#turns.get(chunk.turn);
      this.#turns.set(chunk.turn, applyToTurn(turn ?? newTurn(chunk.turn), chunk));
      // Its message moved from the queue to the transcript.
      if (!turn) void this.refresh();
    }
    if (writes.has(chunk.type)) return;
    this.#news += 1;
    if (chunk.type === 'turn.completed' && chunk.stopReason !== 'error') void this.#settle(chunk.turn);
  }

  /** The turn is over and stored: from now on it is read from the transcript. */
  async #settle(turn: number): Promise<void> {
    const { signal } = this.#over;
    await this.refresh();
    if (signal.aborted || this.#error || turn < this.#liveFrom) return;
    this.#liveFrom = turn + 1;
    for (const each of this.#turns.keys()) if (each <= turn) this.#turns.delete(each);
    this.#changed();
  }

  #changed(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#pacing.gather(() => {
      this.#isGathering = false;
      this.#snapshot = this.#draw();
      for (const listener of this.#listeners) listener();
    });
  }

  #draw(): Followed {
    const messages = this.#messages;
    if (this.#settled.count !== messages.length || this.#settled.liveFrom !== this.#liveFrom) {
      const settled = messages.filter(({ turn }) => turn! < this.#liveFrom);
      this.#settled = { count: messages.length, liveFrom: this.#liveFrom, entries: entriesOf(settled) };
    }
    const growing = new Set<string>();
    const live: Entry[] = [];
    const asked = messages.filter(({ turn, role }) => turn! >= this.#liveFrom && role === 'user');
    const numbers = new Set([...asked.map(({ turn }) => turn!), ...this.#turns.keys()]);
    for (const number of [...numbers].sort((a, b) => a - b)) {
      // The first is the one that started the turn.
      live.push(
        ...asked
          .filter(({ turn }) => turn === number)
          .slice(0, 1)
          .map(userEntry),
      );
      for (const part of this.#turns.get(number)?.parts ?? []) {
        const entry = entryOf(part, number);
        live.push(entry);
        if (part.type !== 'tool' && part.isStreaming) growing.add(entry.key);
      }
    }
    return {
      entries: [...this.#settled.entries, ...live],
      hasOlder: typeof this.#olderCursor === 'string',
      isReadingOlder: this.#readingOlder !== undefined,
      olderError: this.#olderError,
      queued: this.#queued.map(userEntry),
      growing,
      connection: this.#connection,
      isCaughtUp:
        this.#olderCursor !== undefined && (this.#connection === 'over' || !isAfter(this.#target, this.#cursor)),
      cursor: this.#cursor,
      news: this.#news,
      error: this.#error,
    };
  }
}
