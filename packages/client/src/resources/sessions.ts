import { linesIn, readBody } from '../body-stream.ts';
import { PageRequest } from '../page.ts';
import { changeAndStream, SessionStream, type StreamParams } from '../stream.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  ChangedSession,
  ChangeSessions,
  ChunkType,
  CreatedSessionShare,
  CreateSessionShare,
  CreateSessionToken,
  Draft,
  Envelope,
  ForkSession,
  ListedSession,
  Message,
  OpenSession,
  OperationDetails,
  RetrySession,
  SendMessage,
  Session,
  SessionShare,
  SessionToken,
  SessionTurn,
  ToolResult,
  UpdateSession,
} from '../types.generated.ts';

/** Which part of a session's journal to read. */
export type ChunksParams = Omit<Query<'listChunks'>, 'types'> & {
  /** Only chunks of these types. Default: all. */
  types?: readonly ChunkType[] | undefined;
};

/** What a session runs: an agent, or a draft. */
export type OpenSessionParams = OpenSession & ({ agentId: string } | { draft: Draft });

/** Sessions: runs of an agent. Reading needs `read`, changing `write`. */
export class Sessions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Opens a session; with `input`, its first turn starts immediately. With `draft`, it runs a definition that is not saved, which needs
   * the scope `agents:write` as well; `mocks` say which tools are not run, and what the model gets instead.
   *
   *     const session = await client.sessions.open({
   *       environment: 'staging',
   *       draft: { definition: { ...agent, instructions }, mocks: { refund_order: { results: [{ output: 'done' }] } } },
   *     });
   *
   * @throws NotFoundError if the agent or the environment does not exist
   * @throws ConflictError `agent_archived`
   * @throws UnprocessableError `budget_invalid`
   */
  async open(params: OpenSessionParams, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('openSession', { body: params }, options)).session;
  }

  /**
   * Opens a session and streams its first turn, with one request. The stream ends when the session is idle or has ended; until then
   * it resumes after a lost connection. Read it, or abort `options.signal`: its connection is open.
   *
   *     const { session, stream } = await client.sessions.openAndStream({ agentId, environment, input: 'Hello' });
   *     for await (const { chunks } of stream) …
   *
   * @throws what `open` throws
   */
  openAndStream(
    params: OpenSession,
    options?: RequestOptions,
  ): Promise<Result<'openSession'> & { stream: SessionStream }> {
    return changeAndStream(this.#transport, 'openSession', { body: params }, options);
  }

  /** Sessions, newest first; `metadata: { customer: '17' }` finds those with this value. */
  list(params: Query<'listSessions'> = {}, options?: RequestOptions): PageRequest<ListedSession> {
    return new PageRequest(
      (cursor) => this.#transport.call('listSessions', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** How many sessions match, counted up to 10,000. */
  count(params: Query<'countSessions'> = {}, options?: RequestOptions): Promise<Result<'countSessions'>> {
    return this.#transport.call('countSessions', { query: params }, options);
  }

  /**
   * All sessions that match, as a stream that needs little memory regardless of its length. It throws if the connection is lost.
   *
   *     for await (const session of client.sessions.export({ since: '2026-01-01T00:00:00Z' })) …
   */
  async *export(
    filters: Omit<Query<'exportSessions'>, 'format'> = {},
    options: RequestOptions = {},
  ): AsyncGenerator<ListedSession, void, undefined> {
    const accept = 'application/jsonl';
    const connection = await this.#transport.open('exportSessions', { query: filters }, options, { accept });
    for await (const line of linesIn(readBody(connection, this.#transport.sleep))) {
      yield JSON.parse(line) as ListedSession;
    }
  }

  /** The export as a file: JSON lines, or `format: 'csv'`. The stream errors if the connection is cut: the file is then incomplete. */
  async download(
    params: Query<'exportSessions'> = {},
    options: RequestOptions = {},
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const accept = params.format === 'csv' ? 'text/csv' : 'application/jsonl';
    const { response } = await this.#transport.open('exportSessions', { query: params }, options, { accept });
    return response.body as ReadableStream<Uint8Array<ArrayBuffer>>;
  }

  /**
   * Cancels many sessions: those with `sessionIds`, or all open ones that match. One result for each; repeating it has no further
   * effect.
   *
   *     for await (const { sessionId, error } of client.sessions.cancelMany({ agentId, status: 'waiting' })) …
   */
  cancelMany(params: ChangeSessions, options?: RequestOptions): PageRequest<ChangedSession> {
    return new PageRequest(
      (cursor) => this.#transport.call('cancelSessions', { body: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** Closes many sessions, as `cancelMany` cancels them. */
  closeMany(params: ChangeSessions, options?: RequestOptions): PageRequest<ChangedSession> {
    return new PageRequest(
      (cursor) => this.#transport.call('closeSessions', { body: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('getSession', { params: { sessionId } }, options)).session;
  }

  /**
   * What a session with `draft: true` runs, as it can be sent again.
   *
   * @throws NotFoundError if the session runs a version of its agent
   */
  async draft(sessionId: string, options?: RequestOptions): Promise<Draft> {
    return (await this.#transport.call('getSessionDraft', { params: { sessionId } }, options)).draft;
  }

  /** Replaces the metadata. Not retried after a lost connection. */
  async update(sessionId: string, params: UpdateSession, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('updateSession', { params: { sessionId }, body: params }, options)).session;
  }

  /**
   * Permanently deletes an ended session, its child sessions and all their data.
   *
   * @throws ConflictError `conflict` while the session or its parent is open
   */
  delete(sessionId: string, options?: RequestOptions): Promise<Result<'deleteSession'>> {
    return this.#transport.call('deleteSession', { params: { sessionId } }, options);
  }

  /**
   * Opens a new session that continues this one's conversation after its turn `atTurn`, by default the last finished one. With `input`,
   * its next turn starts immediately. To try a turn again from its beginning, fork at the turn before it, with its message as `input`.
   *
   *     const fork = await client.sessions.fork(sessionId, { atTurn: 2, input: 'Try it with a discount', agentVersion: 7 });
   *
   * @throws NotFoundError if the session, the turn or the version does not exist
   * @throws ConflictError `turn_not_finished`, `agent_archived`, `conflict` after 100 forks of forks
   * @throws UnprocessableError `budget_invalid`
   */
  async fork(sessionId: string, params: ForkSession = {}, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('forkSession', { params: { sessionId }, body: params }, options)).session;
  }

  /**
   * Sends a message. It starts the next turn: now, or after the current one. With `onBusy: 'steer'` the current turn ends as
   * `interrupted`, what it waits for is cancelled, and this message goes before queued ones.
   *
   * @throws ConflictError `session_ended`, `session_busy` (with `onBusy: 'reject'`), `agent_archived`
   * @throws RateLimitError `queue_full`: 1,000 messages wait for their turns
   * @throws UnprocessableError `budget_invalid` if the budget is in money and the agent's model no longer has a price
   */
  sendMessage(sessionId: string, params: SendMessage, options?: RequestOptions): Promise<Result<'sendMessage'>> {
    return this.#transport.call('sendMessage', { params: { sessionId }, body: params }, options);
  }

  /**
   * Sends a message and streams what the session then does, with one request, as `openAndStream` does. If the session is busy, that is
   * first the rest of its current turn.
   *
   * @throws what `sendMessage` throws
   */
  sendAndStream(
    sessionId: string,
    params: SendMessage,
    options?: RequestOptions,
  ): Promise<Result<'sendMessage'> & { stream: SessionStream }> {
    return changeAndStream(this.#transport, 'sendMessage', { params: { sessionId }, body: params }, options);
  }

  /** The transcript: messages, responses, tool calls and results, oldest first. `order: 'desc'`: newest first. */
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
   * A model call, tool call or compaction in full, to debug it: the prompt, the request as it was sent, the response, who approved it.
   * Secrets are replaced by their names.
   */
  async operation(sessionId: string, operationId: string, options?: RequestOptions): Promise<OperationDetails> {
    return (await this.#transport.call('getOperation', { params: { sessionId, operationId } }, options)).operation;
  }

  /**
   * Submits the result of a `client` tool call: `output` or `error`. Repeating the same result has no effect.
   *
   * @throws ConflictError `conflict` if it has another result or was cancelled with its turn, `session_ended`
   */
  async sendToolResult(sessionId: string, params: ToolResult, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('sendToolResult', { params: { sessionId }, body: params }, options)).session;
  }

  /**
   * Stops the current turn, which ends as `interrupted` within a second, and cancels what it waits for; the next queued message
   * follows. Has no effect between turns.
   *
   * @throws ConflictError `session_ended`
   */
  async interrupt(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('interruptSession', { params: { sessionId } }, options)).session;
  }

  /**
   * Continues the last turn, if it failed, from its last finished operation; the turn gets its time limit anew. `without`: files, messages
   * and tools that models do not get from now on, because a provider refuses a request with them.
   *
   *     await client.sessions.retry(sessionId, { without: { fileIds: [fileId] } });
   *
   * @throws BadRequestError `invalid_request` if `without` names what the conversation or the agent does not have
   * @throws ConflictError `turn_not_failed`, `session_ended`, `agent_archived`
   * @throws UnprocessableError `budget_invalid`
   */
  async retry(sessionId: string, { without, ...options }: RetrySession & RequestOptions = {}): Promise<Session> {
    const input = { params: { sessionId }, ...(without && { body: { without } }) };
    return (await this.#transport.call('retrySession', input, options)).session;
  }

  /**
   * Replaces the messages of an idle session, except the first, by a summary for the model. The transcript keeps everything. A session
   * compacts itself before it becomes too long for its model.
   *
   * @throws ConflictError `session_busy`, `conflict` if there is nothing to summarize, `session_ended`, `agent_archived`
   * @throws UnprocessableError `budget_invalid`
   */
  async compact(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('compactSession', { params: { sessionId } }, options)).session;
  }

  /**
   * Creates a token for the browser of the session's end user. It reaches this session only, and ends when it expires, and when the key
   * that created it is rotated or deleted. Needs an API key.
   *
   * @throws NotFoundError
   */
  createToken(sessionId: string, params: CreateSessionToken, options?: RequestOptions): Promise<SessionToken> {
    return this.#transport.call('createSessionToken', { params: { sessionId }, body: params }, options);
  }

  /**
   * Creates a link by which anyone can read the conversation, without signing in, until it expires (by default in 7 days) or is
   * revoked. The link is in this response only.
   *
   * @throws NotFoundError
   * @throws ConflictError `conflict` if the session has 50 links
   */
  share(sessionId: string, params: CreateSessionShare = {}, options?: RequestOptions): Promise<CreatedSessionShare> {
    return this.#transport.call('createSessionShare', { params: { sessionId }, body: params }, options);
  }

  /** The share links of a session that have not expired, newest first. */
  shares(
    sessionId: string,
    params: Query<'listSessionShares'> = {},
    options?: RequestOptions,
  ): PageRequest<SessionShare> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listSessionShares', { params: { sessionId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Revokes a share link: it shows nothing from then on.
   *
   * @throws NotFoundError also if it has expired
   */
  unshare(sessionId: string, shareId: string, options?: RequestOptions): Promise<Result<'deleteSessionShare'>> {
    return this.#transport.call('deleteSessionShare', { params: { sessionId, shareId } }, options);
  }

  /**
   * Completes the session when its current turn ends. Repeating it has no effect.
   *
   * @throws ConflictError `session_ended` if it failed or was cancelled
   */
  async close(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('closeSession', { params: { sessionId } }, options)).session;
  }

  /**
   * Cancels the session now. Repeating it has no effect.
   *
   * @throws ConflictError `session_ended` if it completed or failed
   */
  async cancel(sessionId: string, options?: RequestOptions): Promise<Session> {
    return (await this.#transport.call('cancelSession', { params: { sessionId } }, options)).session;
  }

  /** Chunks after `cursor`, oldest first, in envelopes; `limit` counts chunks (1–1000, default 100). */
  chunks(sessionId: string, params: ChunksParams = {}, options?: RequestOptions): PageRequest<Envelope> {
    const query = { ...params, types: params.types?.join(',') };
    return new PageRequest(
      (cursor) => this.#transport.call('listChunks', { params: { sessionId }, query: { ...query, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Streams the session: chunks after `cursor`, then new ones as they are written, until it ends. It resumes after a lost
   * connection, also if the service restarts; each envelope comes once, in order.
   *
   *     const stream = client.sessions.stream(sessionId, { cursor });
   *     for await (const { chunks } of stream) … // stream.cursor: where to resume, if you stop here
   *
   * `options.timeoutMs` and `options.maxRetries` apply until the stream starts; later it fails only after the service has been
   * unreachable for about five minutes.
   *
   * @throws BadRequestError `invalid_cursor`, or the error of any other 4xx, also when it resumes
   * @throws ConnectionError if the service stays unreachable
   */
  stream(sessionId: string, params: StreamParams = {}, options: RequestOptions = {}): SessionStream {
    return new SessionStream(this.#transport, sessionId, params, options);
  }
}
