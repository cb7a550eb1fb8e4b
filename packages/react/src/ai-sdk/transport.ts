/**
 * A session as the backend of `useChat`.
 *
 * - **Chat and session**: a chat is the session that its id names, that `sessionId` names for it, or that its messages come from.
 *   Otherwise its first message opens one. Regenerating and editing continue in a fork, so the session of a chat changes;
 *   `onSession` reports each change.
 * - **One response** of the AI SDK is one turn, or the part of it until the page has to answer: an approval, or the result of a
 *   client tool. The next request carries the answers, and its response continues the message.
 * - **Nothing is kept here that matters after a reload**: what a message continues is in its metadata.
 */
import type { OpenSession, SendMessage, Session, Signalbox } from '@signalbox/client';
import { type FileUrl, type SignalboxMetadata, toUIMessageStream, toUIMessages } from '@signalbox/client/ai-sdk';
import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';
import {
  awaitsPage,
  beginningOf,
  isActive,
  isConflict,
  mayDecide,
  newestMessages,
  turnOfMessage,
} from '../session-calls.ts';
import { type Answers, answersIn } from './answers.ts';
import { contentOf } from './content.ts';

export interface SignalboxTransportOptions {
  /** The client of the page, with a session token. */
  client: Signalbox;
  /** How a chat without a session gets one: what to open, or a function that returns the id of a session that it opened. */
  open?:
    | Omit<OpenSession & { agentId: string }, 'input' | 'draft'>
    | ((chat: { chatId: string }) => Promise<string>)
    | undefined;
  /** The session of a chat, if the chat's id is not the id of its session. */
  sessionId?: ((chat: { chatId: string }) => string | null | undefined) | undefined;
  /** The chat continues in this session from now on: it was opened, or forked to regenerate or edit. Keep its id for a reload. */
  onSession?: ((change: { chatId: string; sessionId: string }) => void) | undefined;
  /** What a message does to a turn that is running. A turn that waits for the page ends. Default: `queue`. */
  onBusy?: SendMessage['onBusy'];
  /**
   * What `stop` of the chat does: `interrupt` stops the turn, `detach` only stops reading. `useChat` also stops a chat when its
   * component unmounts. Default: `interrupt`.
   */
  onStop?: 'interrupt' | 'detach' | undefined;
  /**
   * Which approvals end a response, so that the page can decide them: those that its token or key may decide, or none, because others
   * decide them. Default: `page`.
   */
  approvals?: 'page' | 'others' | undefined;
  /** The URL of a file of the service. Default: `signalbox:file_…`, which the page has to resolve. */
  fileUrl?: FileUrl | undefined;
  /** An interrupt failed: the turn may still be running. */
  onError?: ((error: unknown) => void) | undefined;
}

type SendOptions<M extends UIMessage> = Parameters<ChatTransport<M>['sendMessages']>[0];

interface Following {
  chatId: string;
  sessionId: string;
  turn: number;
  /** Where to start reading: at or before the beginning of the turn. */
  cursor: string | null;
  after?: string | undefined;
  until?: string | null;
  answered?: ReadonlySet<string>;
  signal: AbortSignal | undefined;
  /** Which resume of the chat it is; another one may have replaced it before its session was read. */
  resumes?: number;
}

export class SignalboxTransport<M extends UIMessage = UIMessage<SignalboxMetadata>> implements ChatTransport<M> {
  /** A resumed stream starts at the beginning of the turn. */
  readonly resumeStreamIsReplay = true;
  readonly #options: SignalboxTransportOptions;
  readonly #sessions = new Map<string, string>();
  /** The turn of each message that was sent here. */
  readonly #turns = new Map<string, number>();
  /** The cursor of the session when `load` read its messages. */
  readonly #loaded = new Map<string, string | null>();
  /** The chats that have not received all of the turn that they showed last. */
  readonly #incomplete = new Set<string>();
  /** How often a chat has been resumed: a new resume replaces the previous one, without stopping anything. */
  readonly #resumes = new Map<string, number>();
  readonly #stopping = new Map<string, Promise<void>>();
  /** The chats whose session is being opened. */
  readonly #opening = new Map<string, Promise<unknown>>();

  constructor(options: SignalboxTransportOptions) {
    this.#options = options;
  }

  /** The session of a chat; undefined if it has none yet. */
  sessionIdOf(chatId: string): string | undefined {
    const known = this.#sessions.get(chatId) ?? this.#options.sessionId?.({ chatId }) ?? undefined;
    return known ?? (chatId.startsWith('ses_') ? chatId : undefined);
  }

  /**
   * The messages of a chat, for `messages` of `useChat`; with `resume: true` it then shows the current turn as it continues. At
   * most `limit` stored messages are read, the newest (default 100).
   */
  async load(chatId: string, { limit = 100 }: { limit?: number } = {}): Promise<M[]> {
    const { client, fileUrl } = this.#options;
    const sessionId = this.sessionIdOf(chatId);
    if (!sessionId) return [];
    // First, so that whatever follows it is replayed.
    const { cursor } = await client.sessions.get(sessionId);
    const stored = await newestMessages(client, sessionId, limit);
    this.#loaded.set(chatId, cursor);
    const messages = toUIMessages(stored, { sessionId, fileUrl });
    // The chat says which tools and data its messages have.
    return messages as UIMessage[] as M[];
  }

  async sendMessages(options: SendOptions<M>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, messages } = options;
    const last = messages.at(-1);
    if (!last) throw new Error('The chat has no message to send');
    await this.#stopping.get(chatId);
    let sessionId = this.sessionIdOf(chatId) ?? sessionIn(messages);
    // Two messages that are sent at once to a new chat, as by a double click: the second waits for the session that the first opens.
    while (!sessionId && this.#opening.has(chatId)) {
      await this.#opening.get(chatId)!.catch(() => {});
      sessionId = this.sessionIdOf(chatId);
    }
    if (sessionId) return await this.#sendTo(sessionId, options, last);
    const opening = this.#open(options, last).finally(() => this.#opening.delete(chatId));
    this.#opening.set(chatId, opening);
    return await opening;
  }

  async #sendTo(sessionId: string, options: SendOptions<M>, last: M) {
    const { trigger, messageId } = options;
    if (last.role !== 'user') return await this.#answer(options, last, sessionId);
    const isAgain = trigger === 'regenerate-message' || messageId !== undefined;
    const turn = isAgain ? await this.#turnOf(options, last, sessionId) : undefined;
    if (turn !== undefined) return await this.#fork(options, last, sessionId, turn);
    return await this.#send(options, last, sessionId);
  }

  async reconnectToStream(options: {
    chatId: string;
    abortSignal?: AbortSignal;
  }): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId, abortSignal } = options;
    const resumes = (this.#resumes.get(chatId) ?? 0) + 1;
    this.#resumes.set(chatId, resumes);
    const sessionId = this.sessionIdOf(chatId);
    if (!sessionId) return null;
    const session = await this.#options.client.sessions.get(sessionId);
    const { turn, cursor } = session;
    const loaded = this.#loaded.get(chatId);
    const hasMissed = this.#incomplete.has(chatId) || (loaded !== undefined && loaded !== cursor);
    this.#loaded.delete(chatId);
    if (turn === 0 || !(isActive(session) || hasMissed)) return null;
    return this.#follow({
      chatId,
      sessionId,
      turn,
      cursor: beginningOf(turn),
      until: cursor,
      signal: abortSignal,
      resumes,
    });
  }

  async #open(options: SendOptions<M>, last: M) {
    const { open } = this.#options;
    if (last.role !== 'user') throw new Error('The chat has no session that its last message could continue');
    if (typeof open !== 'function') return await this.#openWith(options, last);
    const { chatId } = options;
    const sessionId = await open({ chatId });
    this.#setSession(chatId, sessionId);
    return await this.#sendTo(sessionId, options, last);
  }

  async #openWith({ chatId, abortSignal }: SendOptions<M>, last: M) {
    const { client, open } = this.#options;
    if (typeof open !== 'object') throw new Error('The chat has no session, and the transport has no `open`');
    const input = await contentOf(last, (file, params) =>
      client.files.upload(file, { ...params, environment: open.environment }),
    );
    const { sessionId, turn } = await client.sessions.open({ ...open, input });
    this.#setSession(chatId, sessionId);
    return this.#follow({ chatId, sessionId, turn: this.#sent(last, turn), cursor: null, signal: abortSignal });
  }

  async #send({ chatId, abortSignal }: SendOptions<M>, last: M, sessionId: string) {
    const { client, onBusy = 'queue' } = this.#options;
    const before = await client.sessions.get(sessionId);
    const content = await this.#contentOf(last, before);
    const sent = await client.sessions.sendMessage(sessionId, {
      content,
      onBusy: (await awaitsPage(client, before)) ? 'steer' : onBusy,
    });
    this.#setSession(chatId, sessionId);
    const turn = this.#sent(last, await turnOfMessage(client, sent));
    return this.#follow({ chatId, sessionId, turn, cursor: before.cursor, signal: abortSignal });
  }

  /** Runs a turn again, with its message as it is now, in a fork that has the turns before it. */
  async #fork({ chatId, abortSignal }: SendOptions<M>, last: M, sessionId: string, again: number) {
    const { client } = this.#options;
    const origin = await client.sessions.get(sessionId);
    const input = await this.#contentOf(last, origin);
    const fork = await client.sessions.fork(sessionId, { atTurn: again - 1, input });
    this.#setSession(chatId, fork.sessionId);
    // The page shows the fork from now on, so the turn of the origin stops.
    if (isActive(origin)) await this.#interrupt(chatId, sessionId);
    const turn = this.#sent(last, fork.turn);
    return this.#follow({ chatId, sessionId: fork.sessionId, turn, cursor: null, signal: abortSignal });
  }

  /** Continues a message with what the page has answered. */
  async #answer({ chatId, abortSignal }: SendOptions<M>, last: M, sessionId: string) {
    const { client } = this.#options;
    const session = await client.sessions.get(sessionId);
    const { turn: current, cursor } = session;
    const answers = answersIn(last, session.waitingFor);
    const answered = await this.#submit(sessionId, answers);
    const { turn, cursor: after } = metadataOf(last) ?? {};
    if (answered.size === 0 && !isActive(session) && (after === cursor || !after)) {
      throw new Error('There is nothing to continue: the turn has ended');
    }
    return this.#follow({
      chatId,
      sessionId,
      turn: turn ?? current,
      cursor: beginningOf(turn ?? current),
      after: after ?? cursor ?? undefined,
      until: cursor,
      answered,
      signal: abortSignal,
    });
  }

  async #submit(sessionId: string, { decisions, results }: Answers): Promise<Set<string>> {
    const { client } = this.#options;
    // Someone else may have been first: the stream says what counts.
    const unlessConflict = (error: unknown) => {
      if (!isConflict(error)) throw error;
    };
    await Promise.all([
      ...decisions.map(({ operationId, ...decision }) =>
        client.approvals.resolve(operationId, decision).catch(unlessConflict),
      ),
      ...results.map((result) => client.sessions.sendToolResult(sessionId, result).catch(unlessConflict)),
    ]);
    return new Set([
      ...decisions.map(({ operationId }) => operationId),
      ...results.map(({ toolCallId }) => toolCallId),
    ]);
  }

  /** The turn that a user message started; undefined if the service does not have the message. */
  async #turnOf({ trigger, messageId }: SendOptions<M>, last: M, sessionId: string): Promise<number | undefined> {
    const ofResponse = /^turn_(\d+)$/.exec(messageId ?? '')?.[1];
    const known = ofResponse ? Number(ofResponse) : (metadataOf(last)?.turn ?? this.#turns.get(last.id));
    if (known !== undefined && known !== null) return known;
    const { data } = await this.#options.client.sessions.messages(sessionId, { order: 'desc', limit: 100 });
    const sameText = (content: (typeof data)[number]['content']) => textOf(content) === textOf(last.parts);
    const stored = data.find(({ messageId: id, role, content }) => {
      return role === 'user' && (id === last.id || (trigger === 'regenerate-message' && sameText(content)));
    });
    return stored?.turn ?? undefined;
  }

  #contentOf(message: M, { environment }: Session) {
    const { client } = this.#options;
    return contentOf(message, (file, params) => client.files.upload(file, { ...params, environment }));
  }

  #sent(message: M, turn: number): number {
    this.#turns.set(message.id, turn);
    return turn;
  }

  #setSession(chatId: string, sessionId: string): void {
    if (this.sessionIdOf(chatId) === sessionId) return;
    this.#sessions.set(chatId, sessionId);
    this.#options.onSession?.({ chatId, sessionId });
  }

  #follow(following: Following): ReadableStream<UIMessageChunk> {
    const { chatId, sessionId, turn, cursor, after, until, answered, signal } = following;
    const { client, fileUrl, approvals = 'page', onStop = 'interrupt' } = this.#options;
    const reading = new AbortController();
    const { resumes = this.#resumes.get(chatId) } = following;
    this.#incomplete.add(chatId);
    const stop = () => {
      reading.abort(signal?.reason);
      // A resume aborts the previous one and starts in the same tick.
      const stopped = Promise.resolve().then(() => {
        if (onStop === 'interrupt' && this.#resumes.get(chatId) === resumes) return this.#interrupt(chatId, sessionId);
      });
      this.#stopping.set(chatId, stopped);
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
    const envelopes = client.sessions.stream(sessionId, { cursor }, { signal: reading.signal });
    return toUIMessageStream(envelopes, {
      turn,
      after,
      until,
      answered,
      decides: (operationId) => approvals === 'page' && mayDecide(client, operationId),
      fileUrl,
      onEnd: (how) => {
        if (how === 'complete') this.#incomplete.delete(chatId);
        signal?.removeEventListener('abort', stop);
        reading.abort();
      },
    });
  }

  async #interrupt(chatId: string, sessionId: string): Promise<void> {
    const interrupting = this.#options.client.sessions.interrupt(sessionId).then(
      () => undefined,
      // A session that has ended needs no stop.
      (error: unknown) => (isConflict(error) ? undefined : this.#options.onError?.(error)),
    );
    this.#stopping.set(chatId, interrupting);
    await interrupting;
  }
}

function metadataOf({ metadata }: UIMessage): Partial<SignalboxMetadata> | undefined {
  const isOurs = typeof metadata === 'object' && metadata !== null && 'sessionId' in metadata;
  return isOurs ? (metadata as Partial<SignalboxMetadata>) : undefined;
}

/** The session that the newest message with one comes from. */
function sessionIn(messages: readonly UIMessage[]): string | undefined {
  const last = messages.findLast((message) => metadataOf(message)?.sessionId);
  return last && metadataOf(last)?.sessionId;
}

function textOf(parts: readonly { type: string; text?: string }[]): string {
  return parts.map(({ type, text }) => (type === 'text' ? text : '')).join('\n');
}
