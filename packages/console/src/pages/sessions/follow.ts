/**
 * What the page shows of a session that it follows: entries, in order.
 *
 * A turn is shown from its chunks until it is over and the transcript was read after that. Then its chunks are dropped.
 */
import type { Chunk, Session, Signalbox, Sleep } from '@signalbox/client';
import { type Connection, cursorOf, gather, SessionFollower } from '@signalbox/client/conversation';
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
  /** `closed`: the session has ended, or can't be read. */
  connection: Connection;
  /** The transcript and the journal have been read up to the opening of the page. */
  isCaughtUp: boolean;
  /** The cursor of the last chunk. */
  cursor: string | null;
  /** Counts changes other than text: statuses, calls, approvals, ends of turns. */
  news: number;
  /** A permanent error, such as a sign-out. */
  error: unknown;
}

// What a response shows while it is written. Nothing else on the page changes with it.
const writes: ReadonlySet<string> = new Set([...voidableChunkTypes, 'message.reset']);
// Combines chunks that arrive together into one update.
const GATHER_MS = 40;

export class Following {
  readonly #follower: SessionFollower;
  readonly #listeners = new Set<() => void>();
  readonly #redraw: () => void;
  #readingOlder: Promise<void> | undefined;
  #olderError: unknown;
  #connection: Connection = 'connecting';
  #wasLost = false;
  #news = 0;
  #error: unknown;
  #settled: { of: unknown; liveFrom: number; entries: Entry[] } = { of: undefined, liveFrom: 0, entries: [] };
  #snapshot: Followed;

  /** `session` may be out of date: later changes are in the journal. */
  constructor(client: Signalbox, session: Session, sleep?: Sleep) {
    this.#redraw = gather(() => this.#publish(), GATHER_MS, sleep);
    this.#follower = new SessionFollower({
      client,
      sessionId: session.sessionId,
      session,
      settles: true,
      sleep,
      changed: () => this.#changed(),
      failed: (error) => {
        this.#error = error ?? undefined;
      },
      chunksArrived: (chunks) => this.#count(chunks),
    });
    this.#snapshot = this.#draw();
  }

  readonly snapshot = (): Followed => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Starts or resumes. Returns a function that stops it. */
  start(): () => void {
    this.#follower.start();
    return () => this.#follower.stop();
  }

  /** Reads new messages of the transcript. Resolves after a read that started after this call. */
  async refresh(): Promise<void> {
    await this.#follower.refresh();
  }

  /** Reads a page of messages before the first entry. If that fails, `olderError` is the error. A call during a read waits for it. */
  readOlder(): Promise<void> {
    if (!this.#follower.history?.hasEarlier) return Promise.resolve();
    this.#readingOlder ??= this.#readOlder().finally(() => {
      this.#readingOlder = undefined;
      this.#redraw();
    });
    return this.#readingOlder;
  }

  async #readOlder(): Promise<void> {
    this.#olderError = undefined;
    this.#redraw();
    try {
      await this.#follower.readEarlier();
    } catch (error) {
      if (!(error instanceof DOMException && error.name === 'AbortError')) this.#olderError = error;
    }
  }

  #count(chunks: readonly Chunk[]): void {
    this.#news += chunks.filter(({ type }) => !writes.has(type)).length;
  }

  #changed(): void {
    const { connection } = this.#follower;
    // At the end, and after changes that are not in the journal may have been missed.
    if (connection !== this.#connection && (connection === 'closed' || this.#wasLost)) this.#news += 1;
    this.#wasLost = connection === 'lost';
    this.#connection = connection;
    this.#redraw();
  }

  #publish(): void {
    this.#snapshot = this.#draw();
    for (const listener of this.#listeners) listener();
  }

  #draw(): Followed {
    const { history, liveFrom, journal, connection, isCaughtUp } = this.#follower;
    const messages = history?.messages ?? [];
    if (this.#settled.of !== messages || this.#settled.liveFrom !== liveFrom) {
      const settled = messages.filter(({ turn }) => turn! < liveFrom);
      this.#settled = { of: messages, liveFrom, entries: entriesOf(settled) };
    }
    const growing = new Set<string>();
    const live: Entry[] = [];
    const asked = messages.filter(({ turn, role }) => turn! >= liveFrom && role === 'user');
    const turns = new Map(journal.turns.filter(({ turn }) => turn >= liveFrom).map((turn) => [turn.turn, turn]));
    const numbers = new Set([...asked.map(({ turn }) => turn!), ...turns.keys()]);
    for (const number of [...numbers].sort((a, b) => a - b)) {
      // The first is the one that started the turn.
      const first = asked.find(({ turn }) => turn === number);
      if (first) live.push(userEntry(first));
      for (const part of turns.get(number)?.parts ?? []) {
        const entry = entryOf(part, number);
        live.push(entry);
        if (part.type !== 'tool' && part.isStreaming) growing.add(entry.key);
      }
    }
    const { at } = journal;
    return {
      entries: [...this.#settled.entries, ...live],
      hasOlder: history?.hasEarlier ?? false,
      isReadingOlder: this.#readingOlder !== undefined,
      olderError: this.#olderError,
      queued: (history?.queued ?? []).map(userEntry),
      growing,
      connection,
      isCaughtUp,
      cursor: at.turn === 0 && at.seq === 0 ? null : cursorOf(at),
      news: this.#news,
      error: this.#error,
    };
  }
}
