/**
 * A session as a page shows it, without any framework: `subscribe` and `getSnapshot`.
 *
 * It is put together from three sources. The **transcript** (`history.ts`) has the user's messages, and all of the turns that were over
 * when the page was opened. The **journal** (`journal.ts`) has later turns, as they are streamed: it is followed by cursor from the
 * start of the turn that was current then, so each chunk arrives once, whatever happens to the network, the page's token or the
 * service. The **outbox** (`outbox.ts`) has messages of this page that are not in the transcript yet.
 *
 * The stream is open while there are subscribers, and for a second longer, because a page that shows another component, or React in
 * its strict mode, subscribes again at once. Without subscribers everything is kept, and read on from the cursor later.
 */
import type { Signalbox } from '../client.ts';
import { cursorOf, isAfter, type Position, positionOf } from '../cursor.ts';
import { NotFoundError, SignalboxError } from '../errors.ts';
import { type Sleep, sleep } from '../time.ts';
import type { Session } from '../types.generated.ts';
import { Backoff, onNetworkChange } from './backoff.ts';
import { failureOf, isTemporary } from './failures.ts';
import { History } from './history.ts';
import { applyChunk, type JournalState, journalAfter } from './journal.ts';
import { Outbox, type Outgoing } from './outbox.ts';
import { sendable } from './sendable.ts';
import type {
  DecideOptions,
  MessageContent,
  NewSession,
  SendOptions,
  SessionActions,
  SessionFailure,
  SessionSnapshot,
} from './types.ts';
import { createView } from './view.ts';

export interface SessionStoreOptions {
  client: Signalbox;
  /** An existing session. */
  sessionId?: string | undefined;
  /** Of the session that the first message opens, if there is none. */
  open?: NewSession | undefined;
  /** Replaces all waiting; for tests. */
  sleep?: Sleep | undefined;
}

export interface SessionStore extends SessionActions {
  /** Calls the listener after each change. Returns a function that ends it. */
  subscribe: (listener: () => void) => () => void;
  /** The same object until something changes. */
  getSnapshot: () => SessionSnapshot;
  /** What was there before anything was read: for rendering on a server. */
  getInitialSnapshot: () => SessionSnapshot;
  readonly hasSubscribers: boolean;
}

const lingerMs = 1_000;
// Chunks that arrive together are one change.
const gatherMs = 16;
const unfinished: ReadonlySet<string> = new Set(['running', 'waiting', 'failed', 'cancelled']);

export function createSessionStore(options: SessionStoreOptions): SessionStore {
  return new Store(options);
}

class Store implements SessionStore {
  readonly #client: Signalbox;
  readonly #open: NewSession | undefined;
  readonly #sleep: Sleep;
  readonly #listeners = new Set<() => void>();
  readonly #outbox: Outbox;
  readonly #backoff: Backoff;
  readonly #draw = createView();
  readonly #initial: SessionSnapshot;
  #snapshot: SessionSnapshot;
  #isGathering = false;

  #sessionId: string | null;
  /** As it was when it was read; null before. */
  #session: Session | null = null;
  #history: History | null = null;
  #journal: JournalState = journalAfter({ turn: 0, seq: 0 });
  /** Turns from this one on are shown from the journal. */
  #liveFrom = 0;
  /** The end of the journal when the session was read. */
  #target: Position = { turn: 0, seq: 0 };
  #connection: SessionSnapshot['connection'];
  #failure: SessionFailure | null = null;
  #deciding: ReadonlySet<string> = new Set();
  #isLoadingEarlier = false;
  /** A read of the transcript that is in progress, and whether another one is needed after it. */
  #reading: Promise<void> | undefined;
  #readAgain = false;

  /** While the store is started. */
  #running: AbortController | undefined;
  /** The stream; aborted alone to connect again. */
  #following: AbortController | undefined;
  #lingering: AbortController | undefined;

  constructor({ client, sessionId, open, sleep: given = sleep }: SessionStoreOptions) {
    this.#client = client;
    this.#open = open;
    this.#sleep = given;
    this.#sessionId = sessionId ?? null;
    this.#connection = sessionId === undefined ? 'closed' : 'connecting';
    this.#backoff = new Backoff(given);
    this.#outbox = new Outbox((outgoing) => this.#post(outgoing), this.#onOutbox, given);
    this.#initial = this.#view();
    this.#snapshot = this.#initial;
  }

  // ── For React ──────────────────────────────────────────────────────────────────────────────────────────────────────

  readonly getSnapshot = (): SessionSnapshot => this.#snapshot;
  readonly getInitialSnapshot = (): SessionSnapshot => this.#initial;

  get hasSubscribers(): boolean {
    return this.#listeners.size > 0;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    // Each call is a subscription of its own, also with the same function.
    const own = () => listener();
    this.#listeners.add(own);
    this.#lingering?.abort();
    if (!this.#running) this.#start();
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this.#stopLater();
    };
  };

  // ── Actions ────────────────────────────────────────────────────────────────────────────────────────────────────────

  readonly send = (content: MessageContent, options: SendOptions = {}): Promise<boolean> => {
    this.#failure = null;
    return this.#outbox.add(sendable(content), options);
  };

  readonly stop = (): Promise<boolean> => this.#act((sessionId) => this.#client.sessions.interrupt(sessionId));

  readonly decide = async (
    operationId: string,
    decision: 'approved' | 'denied',
    options: DecideOptions = {},
  ): Promise<boolean> => {
    if (this.#deciding.has(operationId)) return false;
    this.#deciding = new Set([...this.#deciding, operationId]);
    this.#publish();
    const isDone = await this.#act(() => this.#client.approvals.resolve(operationId, { ...options, decision }));
    this.#deciding = new Set([...this.#deciding].filter((one) => one !== operationId));
    this.#publish();
    return isDone;
  };

  readonly toolResult = (toolCallId: string, result: { output: unknown } | { error: string }): Promise<boolean> =>
    this.#act((sessionId) => this.#client.sessions.sendToolResult(sessionId, { toolCallId, ...result }));

  readonly retry = async (): Promise<boolean> => {
    const { error, status } = this.#snapshot;
    this.#failure = null;
    this.#backoff.wake();
    if (this.#running && !this.#following) void this.#follow(this.#running.signal);
    this.#publish();
    if (error?.of === 'turn' && status === 'idle') {
      return await this.#act((sessionId) => this.#client.sessions.retry(sessionId));
    }
    return await this.#outbox.retry();
  };

  readonly loadEarlier = async (): Promise<boolean> => {
    if (!this.#history?.hasEarlier || this.#isLoadingEarlier) return false;
    const history = this.#history;
    this.#isLoadingEarlier = true;
    this.#publish();
    // A read of what is new changes the same messages.
    await this.#reading;
    const isDone = await this.#act(() => history.readEarlier());
    this.#isLoadingEarlier = false;
    this.#publish();
    return isDone;
  };

  async #act(call: (sessionId: string) => Promise<unknown>): Promise<boolean> {
    if (this.#sessionId === null) return false;
    try {
      await call(this.#sessionId);
      if (this.#failure?.of === 'action') this.#failure = null;
      this.#changed();
      return true;
    } catch (error) {
      this.#failure = failureOf('action', error);
      this.#publish();
      return false;
    }
  }

  // ── Messages of this page ──────────────────────────────────────────────────────────────────────────────────────────

  async #post({ content, options, idempotencyKey }: Outgoing): Promise<string | null> {
    if (this.#sessionId !== null) {
      const message = { content, ...options };
      return (await this.#client.sessions.sendMessage(this.#sessionId, message, { idempotencyKey })).messageId;
    }
    if (!this.#open) throw new TypeError('useSession needs a sessionId or an agentId');
    const session = await this.#client.sessions.open({ ...this.#open, input: content }, { idempotencyKey });
    // All of its journal is new.
    this.#sessionId = session.sessionId;
    this.#session = session;
    this.#liveFrom = 1;
    this.#history = new History(this.#client, session.sessionId);
    if (this.#running) void this.#follow(this.#running.signal);
    // The response does not name the message.
    void this.#readNew();
    return null;
  }

  readonly #onOutbox = (failure?: unknown): void => {
    if (failure !== undefined) this.#failure = failureOf('message', failure);
    this.#publish();
  };

  // ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #start(): void {
    const running = new AbortController();
    this.#running = running;
    onNetworkChange(() => {
      this.#outbox.wake();
      this.#backoff.wake();
      // The connection may be dead without having been closed.
      if (this.#following) void this.#follow(running.signal);
    }, running.signal);
    if (this.#sessionId !== null) void this.#follow(running.signal);
  }

  #stopLater(): void {
    const lingering = new AbortController();
    this.#lingering = lingering;
    this.#sleep(lingerMs, lingering.signal).then(
      () => {
        if (this.hasSubscribers) return;
        this.#running?.abort();
        this.#running = undefined;
        this.#following = undefined;
      },
      () => {},
    );
  }

  /** Follows the journal until the session has ended, the store stops or another call takes over. */
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
        if (!signal.aborted) this.#ended(null);
        break;
      } catch (error) {
        if (signal.aborted) break;
        if (!isTemporary(error)) {
          this.#ended(failureOf('session', error));
          break;
        }
        this.#isLost(error);
        await this.#backoff.pause(signal);
      }
    }
    running.removeEventListener('abort', end);
    if (this.#following === following) this.#following = undefined;
  }

  #isLost(error: unknown): void {
    this.#connection = 'lost';
    // Unlike the network, this may need the page: for example, the user has signed out.
    if (error instanceof SignalboxError && error.code === 'token_unavailable')
      this.#failure = failureOf('session', error);
    this.#changed();
  }

  #ended(failure: SessionFailure | null): void {
    this.#connection = 'closed';
    if (failure) this.#failure = failure;
    // Not this user's, or deleted: what was shown before is not shown any longer.
    if (failure?.cause instanceof NotFoundError) this.#forget();
    this.#changed();
  }

  #forget(): void {
    this.#session = null;
    this.#history = null;
    this.#journal = journalAfter({ turn: 0, seq: 0 });
  }

  /** Reads the session and the end of its transcript, once. */
  async #load(signal: AbortSignal): Promise<void> {
    if (this.#session) return;
    const sessionId = this.#sessionId!;
    this.#connection = 'connecting';
    const session = await this.#client.sessions.get(sessionId, { signal });
    const history = new History(this.#client, sessionId);
    await history.read(signal);
    // A turn may be retried if it failed, and the transcript lacks what a cancelled one has shown. A fork's journal starts after the
    // turns that it inherits.
    const { turn, cursor, forkedFrom, status, stopReason } = session;
    const isLive = turn > (forkedFrom?.turn ?? 0) && (unfinished.has(status) || stopReason === 'error');
    this.#liveFrom = isLive ? turn : turn + 1;
    this.#target = positionOf(cursor);
    this.#journal = journalAfter(isLive ? { turn, seq: 0 } : this.#target);
    this.#history = history;
    this.#session = session;
    if (this.#failure?.of === 'session') this.#failure = null;
    this.#publish();
  }

  async #stream(signal: AbortSignal): Promise<void> {
    const { at } = this.#journal;
    const onConnection = (state: 'open' | 'lost') => {
      if (signal.aborted) return;
      if (state === 'open') {
        this.#backoff.succeeded();
        if (this.#failure?.of === 'session') this.#failure = null;
      }
      this.#connection = state;
      this.#changed();
    };
    const cursor = at.turn === 0 && at.seq === 0 ? null : cursorOf(at);
    const stream = this.#client.sessions.stream(this.#sessionId!, { cursor, onConnection }, { signal });
    for await (const { chunks } of stream) {
      if (signal.aborted) return;
      const { turn } = this.#journal.at;
      this.#journal = chunks.reduce(applyChunk, this.#journal);
      // The user's message of a new turn is not in the journal.
      if (this.#journal.at.turn > turn) void this.#readNew();
      this.#changed();
    }
  }

  /** Reads new messages of the transcript, of which a read that started before may have missed the last. */
  async #readNew(): Promise<void> {
    this.#readAgain = true;
    if (this.#reading) return;
    while (this.#readAgain && this.#history) {
      this.#readAgain = false;
      // A failure leaves the message as this page has sent it; the next turn reads again.
      const history = this.#history;
      this.#reading = history.read().then(
        (messages) => this.#outbox.found(messages),
        () => {},
      );
      await this.#reading;
    }
    this.#reading = undefined;
    this.#changed();
  }

  // ── Showing ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #changed(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#sleep(gatherMs).then(() => {
      this.#isGathering = false;
      this.#publish();
    });
  }

  #publish(): void {
    this.#snapshot = this.#view();
    for (const listener of this.#listeners) listener();
  }

  #view(): SessionSnapshot {
    const isCaughtUp = this.#session !== null && !isAfter(this.#target, this.#journal.at);
    return this.#draw({
      sessionId: this.#sessionId,
      session: this.#session,
      history: this.#history,
      journal: this.#journal,
      isCaughtUp,
      liveFrom: this.#liveFrom,
      outbox: this.#outbox,
      deciding: this.#deciding,
      failure: this.#failure,
      // A session that is not open yet has no stream that could be lost.
      connection: this.#outbox.isWaiting && this.#connection !== 'open' ? 'lost' : this.#connection,
      isLoadingEarlier: this.#isLoadingEarlier,
    });
  }
}
