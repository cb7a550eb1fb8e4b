/**
 * A session as an agent of AG-UI.
 *
 * - **Thread and session**: a thread is the session that `sessionId` or its id names; otherwise its first run opens one. Running a
 *   user message again that has had a run continues in a fork, before the turn of that message.
 * - **A run** sends what the input has that the session does not: answers to interrupts (`resume`), results of client tools (tool
 *   messages), and the last user message. The service has the transcript, so earlier messages are not sent again, and the agent's
 *   tools come from its definition: `tools`, `context` and `state` of the input are not read.
 * - `connectAgent` shows the transcript, and the current turn as it continues.
 */
import {
  AbstractAgent,
  type AgentConfig,
  type BaseEvent,
  type Event,
  EventType,
  type Message,
  type ResumeEntry,
  type RunAgentInput,
  type UserMessage,
} from '@ag-ui/client';
import { type OpenSession, type Session, type Signalbox, SignalboxError } from '@signalbox/client';
import { cursorOf, isAfter } from '@signalbox/client/conversation';
import { Observable } from 'rxjs';
import {
  awaitsPage,
  beginningOf,
  isActive,
  isConflict,
  mayDecide,
  newestMessages,
  turnOfMessage,
} from '../session-calls.ts';
import { decisionOf } from './interrupts.ts';
import { contentOf, toMessages } from './messages.ts';
import { RunEvents } from './run-events.ts';

export interface SignalboxAgentConfig extends AgentConfig {
  /** The client of the page, with a session token. */
  client: Signalbox;
  /** The session of the thread, if the thread's id is not its id. */
  sessionId?: string | undefined;
  /** What a thread without a session opens with its first message. */
  open?: Omit<OpenSession & { agentId: string }, 'input' | 'draft'> | undefined;
  /** The thread continues in this session from now on: it was opened, or forked. Keep its id for a reload. */
  onSession?: ((change: { threadId: string; sessionId: string }) => void) | undefined;
  /** How many stored messages `connectAgent` reads, the newest. Default: 100. */
  historyLimit?: number | undefined;
  /** An interrupt failed: the turn may still be running. */
  onError?: ((error: unknown) => void) | undefined;
}

interface Following {
  session: Session;
  /** The first and the last turn of the run. */
  from: number;
  to: number;
  after: string | null;
  until: string | null;
  answered: ReadonlySet<string>;
}

/** What a run can be stopped by. */
interface Running {
  signal: AbortSignal;
  emit(event: Event): void;
}

export class SignalboxAgent extends AbstractAgent {
  #config: Omit<SignalboxAgentConfig, keyof AgentConfig>;
  #sessionId: string | undefined;
  /** How far the client has the journal. */
  #cursor: string | null = null;
  /** The turn of each message that a run has sent. */
  #turns = new Map<string, number>();
  #shouldInterrupt = false;

  constructor({ client, sessionId, open, onSession, historyLimit, onError, ...config }: SignalboxAgentConfig) {
    super({ ...config, ...(sessionId && !config.threadId && { threadId: sessionId }) });
    this.#config = { client, open, onSession, historyLimit, onError };
    this.#sessionId = sessionId;
  }

  /** The session of the thread; undefined if it has none yet. */
  get sessionId(): string | undefined {
    return this.#sessionId ?? (this.threadId.startsWith('ses_') ? this.threadId : undefined);
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return this.#observe(input, async (running) => {
      const following = await this.#send(input);
      await this.#follow(input, following, new RunEvents(input.messages), running);
    });
  }

  protected override connect(input: RunAgentInput): Observable<BaseEvent> {
    return this.#observe(input, async (running) => {
      const { client } = this.#config;
      const { sessionId } = this;
      const session = sessionId && (await client.sessions.get(sessionId));
      if (!session) return running.emit(finished(input));
      const { turn, cursor } = session;
      const newest = await newestMessages(client, session.sessionId, this.#config.historyLimit ?? 100);
      const stored = newest.filter((message) => {
        // The journal shows the current turn.
        return (
          message.turn !== null &&
          (message.turn < turn || (message.turn === turn && (message.role === 'user' || !isActive(session))))
        );
      });
      for (const message of stored) if (message.role === 'user') this.#turns.set(message.messageId, message.turn!);
      const messages = toMessages(stored);
      running.emit({ type: EventType.STATE_SNAPSHOT, snapshot: stateOf(input, session) });
      // A client keeps its own order of the messages that it has, and appends the others.
      const stays = new Set(messages.map(({ id }) => id));
      if (!input.messages.every(({ id }) => stays.has(id))) {
        running.emit({ type: EventType.MESSAGES_SNAPSHOT, messages: [] });
      }
      running.emit({ type: EventType.MESSAGES_SNAPSHOT, messages });
      this.#cursor = cursor;
      if (!isActive(session)) return running.emit(finished(input));
      const following = {
        session,
        from: turn,
        to: turn,
        after: beginningOf(turn),
        until: cursor,
        answered: new Set<string>(),
      };
      await this.#follow(input, following, new RunEvents(messages), running);
    });
  }

  /** Interrupts the turn. The run then ends as cancelled. */
  override abortRun(): void {
    const { sessionId } = this;
    this.#shouldInterrupt = !sessionId;
    if (sessionId) void this.#interrupt(sessionId);
  }

  override clone(): SignalboxAgent {
    const copy = new SignalboxAgent({ ...this.#config, threadId: this.threadId });
    // Copies what the base class keeps, some of which is private to it.
    Object.assign(copy, super.clone());
    copy.#sessionId = this.#sessionId;
    copy.#cursor = this.#cursor;
    copy.#turns = new Map(this.#turns);
    return copy;
  }

  async #interrupt(sessionId: string): Promise<void> {
    try {
      await this.#config.client.sessions.interrupt(sessionId);
    } catch (error) {
      // A session that has ended needs no stop.
      if (!isConflict(error)) this.#config.onError?.(error);
    }
  }

  /** The approvals that the caller may decide. Of others, the run waits for the decision. */
  async #decidable(operationIds: readonly string[]): Promise<string[]> {
    const may = await Promise.all(operationIds.map((id) => mayDecide(this.#config.client, id)));
    return operationIds.filter((_, index) => may[index]);
  }

  #observe(input: RunAgentInput, run: (running: Running) => Promise<void>): Observable<BaseEvent> {
    const { threadId, runId } = input;
    return new Observable<BaseEvent>((subscriber) => {
      const reading = new AbortController();
      const emit = (event: Event) => subscriber.next(event);
      emit({ type: EventType.RUN_STARTED, threadId, runId });
      run({ signal: reading.signal, emit })
        .catch((error: unknown) => {
          if (reading.signal.aborted) return;
          const code = error instanceof SignalboxError ? error.code : 'client_error';
          emit({ type: EventType.RUN_ERROR, message: error instanceof Error ? error.message : String(error), code });
        })
        .finally(() => subscriber.complete());
      return () => reading.abort();
    });
  }

  /** Sends what the input has for the session. */
  async #send({ messages, resume = [], threadId }: RunAgentInput): Promise<Following> {
    const { client, open } = this.#config;
    const last = messages.at(-1);
    const { sessionId } = this;
    if (!sessionId) {
      if (!open || last?.role !== 'user')
        throw new Error('The thread has no session, and no `open` with a user message');
      const input = await contentOf(last, (file, mediaType) => {
        return client.files.upload(file, { environment: open.environment, mediaType });
      });
      const session = await client.sessions.open({ ...open, input });
      return this.#begun(threadId, session, session.turn, last, null);
    }
    const before = await client.sessions.get(sessionId);
    const answered = await this.#answer(before, messages, resume);
    const known = last?.role === 'user' ? this.#turns.get(last.id) : undefined;
    if (last?.role === 'user' && (known !== undefined || answered.size === 0)) {
      const content = await contentOf(last, (file, mediaType) => {
        return client.files.upload(file, { environment: before.environment, mediaType });
      });
      if (known !== undefined) return await this.#fork(threadId, before, content, known, last);
      const onBusy = (await awaitsPage(client, before)) ? 'steer' : 'queue';
      const sent = await client.sessions.sendMessage(sessionId, { content, onBusy });
      return this.#begun(threadId, sent.session, await turnOfMessage(client, sent), last, before.cursor);
    }
    // An answer that came after another one has no effect. The run then shows the turn as it is, which may have ended.
    const isAnswer = resume.length > 0 || last?.role === 'tool';
    if (!isAnswer && !isActive(before)) {
      throw new Error('The input has nothing for the session, and no turn is running');
    }
    const { turn, cursor } = before;
    return { session: before, from: turn, to: turn, after: this.#cursor ?? cursor, until: cursor, answered };
  }

  #begun(threadId: string, session: Session, turn: number, { id }: Message, after: string | null): Following {
    this.#turns.set(id, turn);
    this.#setSession(threadId, session.sessionId);
    return { session, from: turn, to: turn, after, until: null, answered: new Set() };
  }

  async #fork(
    threadId: string,
    origin: Session,
    input: Awaited<ReturnType<typeof contentOf>>,
    turn: number,
    last: UserMessage,
  ) {
    const { client } = this.#config;
    const fork = await client.sessions.fork(origin.sessionId, { atTurn: turn - 1, input });
    // The page shows the fork from now on, so the turn of the origin stops.
    if (isActive(origin)) await this.#interrupt(origin.sessionId);
    return this.#begun(threadId, fork, fork.turn, last, null);
  }

  #setSession(threadId: string, sessionId: string): void {
    if (this.sessionId === sessionId) return;
    this.#sessionId = sessionId;
    this.#config.onSession?.({ threadId, sessionId });
  }

  /** Submits answers that the session waits for; returns what they answer. */
  async #answer({ sessionId, waitingFor }: Session, messages: Message[], resume: ResumeEntry[]): Promise<Set<string>> {
    const { client } = this.#config;
    const answered = new Set<string>();
    // Someone else may have been first: the journal says what counts.
    const submit = (id: string, call: Promise<unknown>) => {
      answered.add(id);
      return call.catch((error: unknown) => {
        if (!isConflict(error)) throw error;
      });
    };
    const pending = resume.filter(({ interruptId }) => waitingFor?.operationIds.includes(interruptId));
    const results = messages.flatMap((message) => {
      if (message.role !== 'tool' || !waitingFor?.toolCallIds.includes(message.toolCallId)) return [];
      const { toolCallId, content, error } = message;
      return [error ? { toolCallId, error } : { toolCallId, output: outputOf(content) }];
    });
    await Promise.all([
      ...pending.map((entry) =>
        submit(entry.interruptId, client.approvals.resolve(entry.interruptId, decisionOf(entry))),
      ),
      ...results.map((result) => submit(result.toolCallId, client.sessions.sendToolResult(sessionId, result))),
    ]);
    return answered;
  }

  async #follow(
    input: RunAgentInput,
    following: Following,
    events: RunEvents,
    { signal, emit }: Running,
  ): Promise<void> {
    const { client } = this.#config;
    const { session, from, to, after, until, answered } = following;
    const { sessionId } = session;
    if (this.#shouldInterrupt) await this.#interrupt(sessionId);
    this.#shouldInterrupt = false;
    // What a turn has shown before is read again, because later chunks refer to it.
    const isContinued = isAfter(after, beginningOf(from));
    const cursor = isContinued ? beginningOf(from) : after;
    const isOpen = (id: string) => !answered.has(id);
    let position: string | null = null;
    let interrupts: string[] = [];
    for await (const { chunks } of client.sessions.stream(sessionId, { cursor }, { signal })) {
      for (const chunk of chunks) {
        if (chunk.turn < from || chunk.turn > to) continue;
        for (const event of events.push(chunk, { isReplay: after !== null && !isAfter(chunk, after) })) emit(event);
        position = cursorOf(chunk);
      }
      this.#cursor = position ?? this.#cursor;
      const isUpToDate = position !== null && !(until && isAfter(until, position));
      if (isUpToDate) interrupts = await this.#decidable(events.approvals.filter(isOpen));
      const waits = interrupts.length > 0 || events.clientCalls.some(isOpen);
      const isPast = chunks.some(({ turn }) => turn > to);
      if (isPast || (isUpToDate && (events.hasEnded || waits))) break;
    }
    const [last, ...before] = events
      .finish({ threadId: input.threadId, runId: input.runId }, { interrupts, withUsage: !isContinued })
      .reverse();
    for (const event of before.reverse()) emit(event);
    if (last?.type === EventType.RUN_FINISHED) {
      const now = await client.sessions.get(sessionId, { signal });
      emit({ type: EventType.STATE_SNAPSHOT, snapshot: stateOf(input, now) });
    }
    if (last) emit(last);
  }
}

/** The state of the page, and what the session is now. */
function stateOf({ state }: RunAgentInput, { sessionId, status, turn, metadata }: Session): object {
  const own = typeof state === 'object' && state !== null ? (state as object) : {};
  return { ...own, signalbox: { sessionId, status, turn, metadata } };
}

function finished({ threadId, runId }: RunAgentInput): Event {
  return { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: 'success' } };
}

/** The content of a tool message: JSON if it is, otherwise the text. */
function outputOf(content: unknown): unknown {
  if (typeof content !== 'string') return content;
  try {
    return JSON.parse(content) as unknown;
  } catch {
    return content;
  }
}
