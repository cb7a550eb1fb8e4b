import { PageRequest } from '../page.ts';
import { SessionStream, type StreamParams } from '../stream.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  ChunkType,
  Envelope,
  Message,
  OpenSession,
  SendMessage,
  Session,
  SessionTurn,
  ToolResult,
  UpdateSession,
} from '../types.generated.ts';

/** Which part of a Session's journal to read. */
export type ChunksParams = Omit<Query<'listChunks'>, 'types'> & {
  /** Only chunks of these types. Default: all. */
  types?: readonly ChunkType[] | undefined;
};

/** Sessions: an Agent at work; list and read `read`, change `write` (api.md section 5). */
export class Sessions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Opens a Session; with `input` its first turn begins at once.
   *
   * @throws NotFoundError where the Agent or the Environment does not exist
   * @throws ConflictError `agent_archived`
   * @throws UnprocessableError `budget_invalid`
   */
  async open(params: OpenSession, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('openSession', { body: params }, options)).session;
  }

  /** Sessions, newest first; `metadata: { customer: '17' }` finds those that carry it. */
  list(params: Query<'listSessions'> = {}, options?: RequestOptions): PageRequest<Session> {
    return new PageRequest(
      (cursor) => this.#transport.call('listSessions', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('getSession', { params: { sessionId } }, options)).session;
  }

  /** Changes the Session's metadata. Not tried again after a lost connection. */
  async update(sessionId: string, params: UpdateSession, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('updateSession', { params: { sessionId }, body: params }, options)).session;
  }

  /**
   * Deletes an ended Session, its children and all of their data, for good.
   *
   * @throws ConflictError `conflict` while it is open, or the Session that it is a child of
   */
  delete(sessionId: string, options?: RequestOptions): Promise<Result<'deleteSession'>> {
    return this.#transport.call('deleteSession', { params: { sessionId } }, options);
  }

  /**
   * Says something: the next turn, now or, while one is under way, after it. With `onBusy: 'steer'` that one ends as
   * `interrupted`, what it waits for is cancelled, and this message comes before those that are queued.
   *
   * @throws ConflictError `session_ended`, `session_busy` (with `onBusy: 'reject'`), `agent_archived`
   * @throws UnprocessableError `budget_invalid` where its budget is in money and the Agent has got a model without a price
   */
  sendMessage(sessionId: string, params: SendMessage, options?: RequestOptions): Promise<Result<'sendMessage'>> {
    return this.#transport.call('sendMessage', { params: { sessionId }, body: params }, options);
  }

  /** The transcript: what the model was told and what it answered, with tool calls and results. `order: 'desc'`: newest first. */
  messages(sessionId: string, params: Query<'listMessages'> = {}, options?: RequestOptions): PageRequest<Message> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listMessages', { params: { sessionId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** The timeline, newest turn first: the model calls, tool calls and approvals of each turn, with their times. */
  turns(sessionId: string, params: Query<'listTurns'> = {}, options?: RequestOptions): PageRequest<SessionTurn> {
    return new PageRequest(
      (cursor) => this.#transport.call('listTurns', { params: { sessionId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Gives the result of a `client` tool's call: `output` or `error`. The same again changes nothing.
   *
   * @throws ConflictError `conflict` where another result was given or the call was cancelled with its turn, `session_ended`
   */
  async sendToolResult(sessionId: string, params: ToolResult, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('sendToolResult', { params: { sessionId }, body: params }, options)).session;
  }

  /**
   * Stops the turn, which ends as `interrupted` within a second, and cancels what it waits for; the next queued message
   * follows. Without a turn under way nothing changes.
   *
   * @throws ConflictError `session_ended`
   */
  async interrupt(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('interruptSession', { params: { sessionId } }, options)).session;
  }

  /**
   * Completes the Session as soon as its turn is over. Repeated: nothing changes.
   *
   * @throws ConflictError `session_ended` where it ended otherwise
   */
  async close(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('closeSession', { params: { sessionId } }, options)).session;
  }

  /**
   * Cancels the Session now. Repeated: nothing changes.
   *
   * @throws ConflictError `session_ended` where it ended otherwise
   */
  async cancel(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('cancelSession', { params: { sessionId } }, options)).session;
  }

  /** What the Session has shown after `cursor`, oldest first; `limit` counts chunks (1–1000, default 100). */
  chunks(sessionId: string, params: ChunksParams = {}, options?: RequestOptions): PageRequest<Envelope> {
    const query = { ...params, types: params.types?.join(',') };
    return new PageRequest(
      (cursor) => this.#transport.call('listChunks', { params: { sessionId }, query: { ...query, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Follows the Session live: what it has shown after `cursor`, then what it shows, until it ends. A lost connection is
   * taken up again where it was, also over a restart of the service; each envelope comes once, in order.
   *
   *     const stream = client.sessions.stream(sessionId, { cursor });
   *     for await (const { chunks } of stream) … // stream.cursor: where to resume, if you stop here
   *
   * `options.timeoutMs` and `options.maxRetries` hold until the stream begins; after that it gives up only when the
   * service was away for about five minutes.
   *
   * @throws BadRequestError `invalid_cursor`, or any other 4xx, also when it is taken up again
   * @throws ConnectionError when the service stays away
   */
  stream(sessionId: string, params: StreamParams = {}, options: RequestOptions = {}): SessionStream {
    return new SessionStream(this.#transport, sessionId, params, options);
  }
}
