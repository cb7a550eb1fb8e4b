/**
 * Follows a session for a program that shows it: the transcript as far as it has been read, and the journal after it.
 *
 * The **transcript** (`history.ts`) has the user's messages, and all of the turns that were over when the session was read. The
 * **journal** (`journal.ts`) has later turns, as they are streamed: it is followed by cursor from the start of the turn that was
 * current then, so each chunk arrives once, whatever happens to the network, the token or the service. A turn that failed or was
 * cancelled is read from the journal too: it may be retried, and the transcript lacks what a cancelled one has shown.
 */
import type { Signalbox } from '../client.ts';
import { cursorOf, isAfter, type Position, positionOf } from '../cursor.ts';
import { NotFoundError, SignalboxError } from '../errors.ts';
import { type Sleep, sleep } from '../time.ts';
import type { Chunk, Message, Session } from '../types.generated.ts';
import { Backoff, onNetworkChange } from './backoff.ts';
import { isTemporary } from './failures.ts';
import { History } from './history.ts';
import { applyChunk, type JournalState, journalAfter } from './journal.ts';

/**
 * - `closed`: there is no session yet, it has ended, or it can't be read. → connecting
 * - `connecting`: the session and the end of its transcript are read, then the stream is opened. → open, lost, closed
 * - `open`: chunks arrive. → lost, closed
 * - `lost`: the network or the service is down, and it is tried again after a pause. → connecting, open, closed
 */
export type Connection = 'closed' | 'connecting' | 'open' | 'lost';

export interface FollowerOptions {
  client: Signalbox;
  /** null: there is no session yet; `opened` gives it. */
  sessionId: string | null;
  /** The session as it was at some time, so that it need not be read: later changes are in the journal. */
  session?: Session | undefined;
  /** Whether turns that are over are shown from the transcript as soon as it has them. Default: as they were streamed. */
  settles?: boolean | undefined;
  /** Replaces all waiting; for tests. */
  sleep?: Sleep | undefined;
  /** Something that is shown has changed. */
  changed: () => void;
  /** The session can't be read, for good or until someone acts. null: it can be read again. */
  failed: (error: unknown) => void;
  /** Chunks that have arrived; they are in `journal`. */
  chunksArrived?: ((chunks: readonly Chunk[]) => void) | undefined;
  /** Messages that were just read from the transcript; they are in `history`. */
  messagesRead?: ((messages: readonly Message[]) => void) | undefined;
  /** A browser has lost its network, or has it back. */
  networkChanged?: (() => void) | undefined;
}

const start: Position = { turn: 0, seq: 0 };
const unfinished: ReadonlySet<string> = new Set(['running', 'waiting', 'failed', 'cancelled']);

export class SessionFollower {
  readonly #options: FollowerOptions;
  readonly #backoff: Backoff;
  readonly #readBackoff: Backoff;
  #sessionId: string | null;
  #session: Session | null = null;
  #history: History | null = null;
  #journal: JournalState = journalAfter(start);
  #liveFrom = 0;
  #connection: Connection;
  /** The end of the journal when the session was read. */
  #target: Position = start;
  #isLoaded = false;
  /** The stream has come to its end. */
  #hasEnded = false;
  /** Until it is stopped. */
  #running: AbortController | undefined;
  /** The stream; aborted alone to connect again. */
  #following: AbortController | undefined;
  /** Reads of the transcript, one after another, because they change the same messages. */
  #reads: Promise<unknown> = Promise.resolve();
  #nextRead: Promise<boolean> | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.sleep ?? sleep);
    this.#readBackoff = new Backoff(options.sleep ?? sleep);
    this.#sessionId = options.sessionId;
    this.#connection = options.sessionId === null ? 'closed' : 'connecting';
    if (options.session) this.#begin(options.session);
  }

  get sessionId(): string | null {
    return this.#sessionId;
  }

  /** As it was when it was read; null before. */
  get session(): Session | null {
    return this.#session;
  }

  /** null before it is read. */
  get history(): History | null {
    return this.#history;
  }

  get journal(): JournalState {
    return this.#journal;
  }

  /** Turns from this one on are shown from the journal, earlier ones from the transcript. */
  get liveFrom(): number {
    return this.#liveFrom;
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** Everything has been read that was written when the session was read. */
  get isCaughtUp(): boolean {
    return this.#isLoaded && (this.#hasEnded || !isAfter(this.#target, this.#journal.at));
  }

  /** Starts, or resumes where it stopped. */
  start(): void {
    if (this.#running) return;
    const running = new AbortController();
    this.#running = running;
    onNetworkChange(() => {
      this.#options.networkChanged?.();
      this.#wake();
      // The connection may be dead without having been closed.
      if (this.#following) void this.#follow(running.signal);
    }, running.signal);
    if (this.#sessionId !== null) void this.#follow(running.signal);
  }

  /** Keeps what was read. */
  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#following = undefined;
  }

  /** Tries again now, also what has failed for good. */
  retry(): void {
    this.#wake();
    if (this.#running && !this.#following && this.#sessionId !== null) void this.#follow(this.#running.signal);
  }

  /** A message of this program has just opened the session: all of its journal is new. */
  opened(session: Session): void {
    this.#sessionId = session.sessionId;
    this.#session = session;
    this.#liveFrom = 1;
    this.#history = new History(this.#options.client, session.sessionId);
    this.#isLoaded = true;
    if (this.#running) void this.#follow(this.#running.signal);
    // The response does not name the message.
    void this.refresh();
  }

  /** Reads new messages of the transcript. Resolves after a read that began after this call: with whether it succeeded. */
  refresh(): Promise<boolean> {
    this.#nextRead ??= this.#inTurn(() => {
      this.#nextRead = undefined;
      return this.#readNew();
    });
    return this.#nextRead;
  }

  /** Reads a page of earlier messages. Rejects if that fails. */
  readEarlier(): Promise<void> {
    return this.#inTurn(async () => await this.#history?.readEarlier(this.#running?.signal));
  }

  #inTurn<T>(read: () => Promise<T>): Promise<T> {
    const done = this.#reads.then(read);
    this.#reads = done.catch(() => {});
    return done;
  }

  #wake(): void {
    this.#backoff.wake();
    this.#readBackoff.wake();
  }

  /** Follows the journal until the session has ended, it is stopped, or another call takes over. */
  async #follow(running: AbortSignal): Promise<void> {
    this.#following?.abort();
    const following = new AbortController();
    this.#following = following;
    const { signal } = following;
    const end = () => following.abort();
    running.addEventListener('abort', end, { once: true });
    if (running.aborted) end();
    while (!signal.aborted) {
      try {
        await this.#load(signal);
        await this.#stream(signal);
        if (!signal.aborted) this.#close();
        break;
      } catch (error) {
        if (signal.aborted) break;
        if (!isTemporary(error)) {
          this.#fail(error);
          break;
        }
        this.#connection = 'lost';
        // Unlike the network, this may need the page: for example, the user has signed out.
        if (error instanceof SignalboxError && error.code === 'token_unavailable') this.#options.failed(error);
        this.#options.changed();
        await this.#backoff.pause(signal);
      }
    }
    running.removeEventListener('abort', end);
    if (this.#following === following) this.#following = undefined;
  }

  #close(): void {
    this.#connection = 'closed';
    this.#hasEnded = true;
    this.#options.changed();
    void this.refresh();
  }

  #fail(error: unknown): void {
    this.#connection = 'closed';
    // Not this user's, or deleted: what was shown before is not shown any longer.
    if (error instanceof NotFoundError) {
      this.#session = null;
      this.#history = null;
      this.#journal = journalAfter(start);
      this.#isLoaded = false;
    }
    this.#options.failed(error);
    this.#options.changed();
  }

  /** Reads the session and the end of its transcript, once. */
  async #load(signal: AbortSignal): Promise<void> {
    if (this.#isLoaded) return;
    const { client, failed, changed } = this.#options;
    const sessionId = this.#sessionId!;
    this.#connection = 'connecting';
    const session = this.#session ?? (await client.sessions.get(sessionId, { signal }));
    const history = new History(client, sessionId);
    await this.#inTurn(async () => {
      await history.read(signal);
      this.#history = history;
    });
    if (this.#session === null) this.#begin(session);
    this.#isLoaded = true;
    failed(null);
    changed();
  }

  /** Decides where the journal is read from. */
  #begin(session: Session): void {
    const { turn, cursor, forkedFrom, status, stopReason } = session;
    // A fork's journal starts after the turns that it inherits.
    const isLive = turn > (forkedFrom?.turn ?? 0) && (unfinished.has(status) || stopReason === 'error');
    this.#session = session;
    this.#liveFrom = isLive ? turn : turn + 1;
    this.#target = positionOf(cursor);
    this.#journal = journalAfter(isLive ? { turn, seq: 0 } : this.#target);
  }

  async #stream(signal: AbortSignal): Promise<void> {
    const { client, failed, changed, chunksArrived } = this.#options;
    const onConnection = (state: 'open' | 'lost') => {
      if (signal.aborted) return;
      if (state === 'open') {
        this.#backoff.succeeded();
        failed(null);
      }
      this.#connection = state;
      changed();
    };
    const { at } = this.#journal;
    const cursor = at.turn === 0 && at.seq === 0 ? null : cursorOf(at);
    const stream = client.sessions.stream(this.#sessionId!, { cursor, onConnection }, { signal });
    for await (const { chunks } of stream) {
      if (signal.aborted) return;
      const { turn } = this.#journal.at;
      this.#journal = chunks.reduce(applyChunk, this.#journal);
      chunksArrived?.(chunks);
      // The user's message of a new turn is not in the journal.
      if (this.#journal.at.turn > turn) void this.refresh();
      if (this.#options.settles) for (const chunk of chunks) this.#settle(chunk);
      changed();
    }
  }

  /** A turn that is over and stored is read from the transcript from then on. One that failed may be retried. */
  #settle(chunk: Chunk): void {
    if (chunk.type !== 'turn.completed' || chunk.stopReason === 'error') return;
    const { turn } = chunk;
    void this.refresh().then((isRead) => {
      if (!isRead || turn < this.#liveFrom) return;
      this.#liveFrom = turn + 1;
      this.#journal = { ...this.#journal, turns: this.#journal.turns.filter((one) => one.turn > turn) };
      this.#options.changed();
    });
  }

  async #readNew(): Promise<boolean> {
    for (;;) {
      const history = this.#history;
      const signal = this.#running?.signal;
      // It is read as a whole first.
      if (!history) return false;
      try {
        const messages = await history.read(signal);
        this.#readBackoff.succeeded();
        this.#options.messagesRead?.(messages);
        this.#options.changed();
        return true;
      } catch (error) {
        // What can't be read for good is what the stream says too.
        if (!signal || signal.aborted || !isTemporary(error)) return false;
        await this.#readBackoff.pause(signal);
      }
    }
  }
}
