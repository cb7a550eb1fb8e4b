/**
 * A Session, followed by the page for as long as it is open.
 *
 * - The **transcript** is read from its end: the newest page, what came since whenever there may be more, and what is before on
 *   demand. Turns are shown whole: of one that a page cuts, what was read is held back until its beginning is there.
 * - The **journal** is followed from the beginning of the turn under way, by cursor: each chunk comes once and in order, over
 * lost
 *   connections and restarts of the service, however long they last.
 * - A turn is shown from its chunks until it is over and the transcript was read after that; then its chunks are let go.
 *
 * A turn that did not come to its end (the Session failed or was cancelled in it) stays with its chunks: the transcript does not
 * have what was shown of it.
 */
import { type Chunk, type Message, type Session, type Signalbox, SignalboxError } from '@signalbox/client';
import { type Entry, entriesOf, LiveTurn, userEntry } from './conversation.ts';

export interface Followed {
  entries: readonly Entry[];
  /** There is more of the transcript before the first entry. */
  hasOlder: boolean;
  isReadingOlder: boolean;
  /** Why it could not be read. */
  olderError: unknown;
  /** Messages whose turn has not begun. */
  queued: readonly Entry[];
  /** The keys of texts that still grow. */
  growing: ReadonlySet<string>;
  connection: 'connecting' | 'open' | 'lost' | 'over';
  /** What was there when the page was opened has been read, transcript and journal. */
  isCaughtUp: boolean;
  /** Of the last chunk. */
  cursor: string | null;
  /** Counts what changes more than text: statuses, calls, approvals, ends of turns. */
  news: number;
  /** What ended the following for good, such as being signed out. */
  error: unknown;
}

/** How the page waits; a test's need not. */
export interface Pacing {
  /** What comes within a moment is drawn once. */
  gather(draw: () => void): void;
  /** Before the service is asked again; ends early where the signal says so. */
  pause(signal: AbortSignal): Promise<void>;
}

// Some screens full; no more turns than the first page of the timeline has (session-view.tsx), where each has an answer.
const PAGE_ROWS = 50;
// What came since is little, mostly.
const NEWS_ROWS = 20;
const unfinished = new Set(['running', 'waiting', 'failed', 'cancelled']);

export class Following {
  readonly #client: Signalbox;
  readonly #sessionId: string;
  readonly #pacing: Pacing;
  readonly #listeners = new Set<() => void>();
  #over = new AbortController();

  /** Oldest first, whole turns. */
  #messages: Message[] = [];
  /** The end of a turn whose beginning has not been read. */
  #cutOff: Message[] = [];
  #queued: Message[] = [];
  /** Where the transcript goes on to what is older; null where there is no more, undefined before it was read at all. */
  #olderCursor: string | null | undefined;
  #isReadingOlder = false;
  #olderError: unknown;
  /** One read at a time; whoever asks during one waits for the next. */
  #reading: Promise<void> | undefined;
  #readNext: Promise<void> | undefined;

  /** Turns from here on are shown from their chunks. */
  #liveFrom: number;
  readonly #turns = new Map<number, LiveTurn>();
  #cursor: string | null;
  readonly #target: string | null;
  #connection: Followed['connection'] = 'connecting';
  #news = 0;
  #error: unknown;

  #settled: { count: number; liveFrom: number; entries: Entry[] } = { count: 0, liveFrom: 0, entries: [] };
  #isGathering = false;
  #snapshot: Followed;

  /** `session` may be some time old: what happened since is in the journal. */
  constructor(client: Signalbox, session: Session, pacing: Pacing) {
    this.#client = client;
    this.#sessionId = session.sessionId;
    this.#pacing = pacing;
    const { turn, cursor } = session;
    const isShownByChunks = turn > 0 && unfinished.has(session.status);
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

  /** Begins, or goes on where it was stopped. The answer stops it. */
  start(): () => void {
    const over = new AbortController();
    this.#over = over;
    void this.refresh();
    void this.#followJournal(over.signal);
    return () => over.abort();
  }

  /** Reads what the transcript has since; done when a read that began after this call is. */
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

  /** Reads what is before the first entry, a page of it. Where that does not succeed, `olderError` says why. */
  async readOlder(): Promise<void> {
    if (!this.#olderCursor || this.#isReadingOlder) return;
    const { signal } = this.#over;
    this.#isReadingOlder = true;
    this.#olderError = undefined;
    this.#changed();
    try {
      await this.#readPageBefore(this.#olderCursor, signal);
    } catch (error) {
      if (!signal.aborted) this.#olderError = error;
    }
    this.#isReadingOlder = false;
    this.#changed();
  }

  /** Without a cursor the newest. More than a page where all of it is one turn that began before. */
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

  /** From the newest back to what is known. */
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
          // What was missed may be more than chunks.
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

  /** Waits where what went wrong will pass; else remembers it. */
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
    let turn = this.#turns.get(chunk.turn);
    if (chunk.turn >= this.#liveFrom && !turn) {
      turn = new LiveTurn(chunk.turn);
      this.#turns.set(chunk.turn, turn);
      // Its message left the queue for the transcript.
      void this.refresh();
    }
    turn?.add(chunk);
    if (chunk.type === 'message.chunk' || chunk.type === 'message.reset') return;
    this.#news += 1;
    if (chunk.type === 'turn.completed' && chunk.stopReason !== 'error') void this.#settle(chunk.turn);
  }

  /** The turn is over and stored: from here on it is read from the transcript. */
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
      // The first is what the turn began with.
      live.push(
        ...asked
          .filter(({ turn }) => turn === number)
          .slice(0, 1)
          .map(userEntry),
      );
      const turn = this.#turns.get(number);
      const entries = turn?.entries() ?? [];
      live.push(...entries);
      const last = entries.at(-1);
      if (last?.kind === 'text' && !turn!.isOver) growing.add(last.key);
    }
    return {
      entries: [...this.#settled.entries, ...live],
      hasOlder: typeof this.#olderCursor === 'string',
      isReadingOlder: this.#isReadingOlder,
      olderError: this.#olderError,
      queued: this.#queued.map(userEntry),
      growing,
      connection: this.#connection,
      isCaughtUp:
        this.#olderCursor !== undefined && (this.#connection === 'over' || !isBefore(this.#cursor, this.#target)),
      cursor: this.#cursor,
      news: this.#news,
      error: this.#error,
    };
  }
}

export function isBefore(cursor: string | null, other: string | null): boolean {
  const [turn, seq] = position(cursor);
  const [otherTurn, otherSeq] = position(other);
  return turn < otherTurn || (turn === otherTurn && seq < otherSeq);
}

function position(cursor: string | null): [turn: number, seq: number] {
  const [, turn, seq] = /^turn_(\d+):seq_(\d+)$/.exec(cursor ?? '') ?? [];
  return [Number(turn ?? 0), Number(seq ?? 0)];
}
