/**
 * A session as a page shows it, without any framework: `subscribe` and `getSnapshot`.
 *
 * It shows what is read of the session (`follower.ts`), and messages of this page that are not in the transcript yet (`outbox.ts`).
 *
 * The stream is open while there are subscribers, and for a second longer, because a page that shows another component, or React in
 * its strict mode, subscribes again at once. Without subscribers everything is kept, and read on from the cursor later.
 */
import type { Signalbox } from '../client.ts';
import { type Sleep, sleep } from '../time.ts';
import { failureOf } from './failures.ts';
import { SessionFollower } from './follower.ts';
import { gather } from './gather.ts';
import { Outbox, type Outgoing } from './outbox.ts';
import { sendable } from './sendable.ts';
import type {
  DecideOptions,
  MessageContent,
  NewSession,
  RetryOptions,
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
  /** The session that the first message opens, if there is none. */
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

export function createSessionStore(options: SessionStoreOptions): SessionStore {
  return new Store(options);
}

class Store implements SessionStore {
  readonly #client: Signalbox;
  readonly #open: NewSession | undefined;
  readonly #sleep: Sleep;
  readonly #listeners = new Set<() => void>();
  readonly #follower: SessionFollower;
  readonly #outbox: Outbox;
  readonly #draw = createView();
  /** Publishes a moment later, with the changes that come meanwhile. */
  readonly #changed: () => void;
  readonly #initial: SessionSnapshot;
  #snapshot: SessionSnapshot;
  #failure: SessionFailure | null = null;
  #deciding: ReadonlySet<string> = new Set();
  #isLoadingEarlier = false;
  #lingering: AbortController | undefined;

  constructor({ client, sessionId, open, sleep: given = sleep }: SessionStoreOptions) {
    this.#client = client;
    this.#open = open;
    this.#sleep = given;
    this.#changed = gather(() => this.#publish(), gatherMs, given);
    this.#outbox = new Outbox((outgoing) => this.#post(outgoing), this.#onOutbox, given);
    this.#follower = new SessionFollower({
      client,
      sessionId: sessionId ?? null,
      sleep: given,
      changed: this.#changed,
      failed: this.#onFailure,
      messagesRead: (messages) => this.#outbox.found(messages),
      networkChanged: () => this.#outbox.wake(),
    });
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
    this.#follower.start();
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

  readonly retry = async ({ without }: RetryOptions = {}): Promise<boolean> => {
    const { error, status } = this.#snapshot;
    this.#failure = null;
    this.#follower.retry();
    this.#publish();
    if (error?.of === 'turn' && status === 'idle') {
      return await this.#act((sessionId) => this.#client.sessions.retry(sessionId, without && { without }));
    }
    return await this.#outbox.retry();
  };

  readonly loadEarlier = async (): Promise<boolean> => {
    if (!this.#follower.history?.hasEarlier || this.#isLoadingEarlier) return false;
    this.#isLoadingEarlier = true;
    this.#publish();
    const isDone = await this.#act(() => this.#follower.readEarlier());
    this.#isLoadingEarlier = false;
    this.#publish();
    return isDone;
  };

  async #act(call: (sessionId: string) => Promise<unknown>): Promise<boolean> {
    const { sessionId } = this.#follower;
    if (sessionId === null) return false;
    try {
      await call(sessionId);
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
    const { sessionId } = this.#follower;
    if (sessionId !== null) {
      const message = { content, ...options };
      return (await this.#client.sessions.sendMessage(sessionId, message, { idempotencyKey })).messageId;
    }
    if (!this.#open) throw new TypeError('useSession needs a sessionId or an agentId');
    this.#follower.opened(await this.#client.sessions.open({ ...this.#open, input: content }, { idempotencyKey }));
    return null;
  }

  readonly #onOutbox = (failure?: unknown): void => {
    if (failure !== undefined) this.#failure = failureOf('message', failure);
    this.#publish();
  };

  // ── Reading and showing ────────────────────────────────────────────────────────────────────────────────────────────

  #stopLater(): void {
    const lingering = new AbortController();
    this.#lingering = lingering;
    this.#sleep(lingerMs, lingering.signal).then(
      () => {
        if (!this.hasSubscribers) this.#follower.stop();
      },
      () => {},
    );
  }

  readonly #onFailure = (error: unknown): void => {
    if (error !== null) this.#failure = failureOf('session', error);
    else if (this.#failure?.of === 'session') this.#failure = null;
  };

  #publish(): void {
    this.#snapshot = this.#view();
    for (const listener of this.#listeners) listener();
  }

  #view(): SessionSnapshot {
    const { connection } = this.#follower;
    return this.#draw({
      follower: this.#follower,
      outbox: this.#outbox,
      deciding: this.#deciding,
      failure: this.#failure,
      // A session that is not open yet has no stream that could be lost.
      connection: this.#outbox.isWaiting && connection !== 'open' ? 'lost' : connection,
      isLoadingEarlier: this.#isLoadingEarlier,
    });
  }
}
