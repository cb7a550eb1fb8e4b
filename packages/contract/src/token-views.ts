/**
 * What a session token reads: a view of each resource, field by field. A field that is not listed is left out, so a new field is hidden
 * from end users until it is listed here; the compiler asks for it. A response to a token is still valid by the contract: what is hidden
 * has the value that it would have if there were nothing.
 *
 * Hidden is what is meant for the integrator (metadata, budgets, costs), what describes how the agent is built (models, summaries, the
 * texts of errors), other sessions, and who of the organization decided.
 */
import type { Approval } from './approvals.ts';
import type { Chunk, ChunkType, Envelope } from './chunks.ts';
import type { StoredFile } from './files.ts';
import type { RetryWithout } from './left-out.ts';
import type { Result, RouteName, Routes } from './routes.ts';
import type { SessionError, Usage, WaitingFor } from './session-state.ts';
import type { ListedSession, Message, MessagePart, Session } from './sessions.ts';
import type { SessionTurn, TurnOperation } from './timeline.ts';

/** `show`: as it is. `leave out`: only for an optional field. A function: what is shown instead. */
type FieldView<T, K extends keyof T> =
  | 'show'
  | (undefined extends T[K] ? 'leave out' : never)
  | ((value: Exclude<T[K], undefined>, whole: T) => T[K]);
type View<T> = { readonly [K in keyof T]-?: FieldView<T, K> };

function viewed<T extends object>(view: View<T>, whole: T): T {
  const result: Partial<T> = {};
  for (const field of Object.keys(view) as (keyof T)[]) {
    const how: unknown = view[field];
    const value = whole[field];
    if (value === undefined || how === 'leave out') continue;
    result[field] = how === 'show' ? value : (how as (value: unknown, whole: T) => T[typeof field])(value, whole);
  }
  return result as T;
}

const nullable =
  <T, W>(view: (value: T) => T) =>
  (value: T | null, _whole: W): T | null =>
    value === null ? null : view(value);
const list =
  <T, W>(view: (value: T) => T) =>
  (values: T[], _whole: W): T[] =>
    values.map(view);
const nothing = () => null;

/**
 * What a token can leave out with a retry: files, and a message that is certainly the refused one. Of several messages, some may be the
 * integrator's, and tools are what the agent is.
 */
export function retryWithoutForToken({ retryWithout = {} }: SessionError): RetryWithout | undefined {
  const { fileIds = [], messageIds = [] } = retryWithout;
  if (fileIds.length > 0) return { fileIds };
  return messageIds.length === 1 ? { messageIds } : undefined;
}

/** The code is for the page. The text is for the operator: it may name a model, a server or an environment. */
const error = (whole: SessionError): SessionError => {
  const retryWithout = retryWithoutForToken(whole);
  return { code: whole.code, message: 'The turn failed.', ...(retryWithout && { retryWithout }) };
};
const FAILED_CALL = () => 'The call failed.';

const usage = (value: Usage): Usage =>
  viewed<Usage>(
    {
      inputTokens: 'show',
      outputTokens: 'show',
      cachedTokens: 'show',
      cacheWriteTokens: 'show',
      webSearches: 'show',
      steps: 'show',
      toolCalls: 'show',
      costUsd: nothing,
    },
    value,
  );

const waitingFor = (value: WaitingFor): WaitingFor =>
  viewed<WaitingFor>(
    {
      type: 'show',
      operationIds: 'show',
      toolCallIds: 'show',
      sessionIds: () => [],
      expiresAt: 'show',
      retryAt: 'show',
      error,
    },
    value,
  );

const sessionView: View<Session> = {
  sessionId: 'show',
  agentId: 'show',
  agentVersion: 'show',
  draft: 'show',
  environment: 'show',
  status: 'show',
  waitingFor: nullable(waitingFor),
  stopReason: 'show',
  turn: 'show',
  cursor: 'show',
  usage,
  budget: nothing,
  error: nullable(error),
  leftOut: nothing,
  metadata: () => ({}),
  endUser: 'show',
  parentSessionId: nothing,
  forkedFrom: nothing,
  createdAt: 'show',
  updatedAt: 'show',
  endedAt: 'show',
};
const session = (value: Session): Session => viewed(sessionView, value);
const listedSession = (value: ListedSession): ListedSession =>
  viewed<ListedSession>({ ...(sessionView as View<ListedSession>), preview: 'show', workingMs: nothing }, value);

const position = { turn: 'show', seq: 'show' } as const;
/** A page may know whether its own end user can decide; who else can is of no concern to it. */
const by = (value: NonNullable<Approval['by']>) => (value.endUser ? { endUser: value.endUser } : {});

const chunkViews: { readonly [Type in ChunkType]: View<Extract<Chunk, { type: Type }>> } = {
  'step.started': { type: 'show', step: 'show', model: () => '', ...position },
  'message.started': { type: 'show', messageId: 'show', step: 'show', ...position },
  'message.chunk': { type: 'show', delta: 'show', sources: 'show', ...position },
  'reasoning.chunk': { type: 'show', delta: 'show', ...position },
  'tool.input.chunk': { type: 'show', toolCallId: 'show', toolName: 'show', delta: 'show', ...position },
  'session.status': {
    type: 'show',
    status: 'show',
    waitingFor: nullable(waitingFor),
    stopReason: 'show',
    error,
    ...position,
  },
  'tool.call': {
    type: 'show',
    tool: 'show',
    toolCallId: 'show',
    input: 'show',
    by: 'show',
    mocked: 'show',
    notRun: 'show',
    ...position,
  },
  'tool.result': {
    type: 'show',
    toolCallId: 'show',
    tool: 'show',
    input: 'show',
    output: 'show',
    error: FAILED_CALL,
    by: 'show',
    notRun: 'show',
    outcomeUnknown: 'show',
    ...position,
  },
  'file.created': { type: 'show', toolCallId: 'show', file: 'show', ...position },
  'approval.requested': {
    type: 'show',
    operationId: 'show',
    name: 'show',
    input: 'show',
    toolCallId: 'show',
    expiresAt: 'show',
    by,
    ...position,
  },
  'approval.decided': {
    type: 'show',
    operationId: 'show',
    toolCallId: 'show',
    decision: 'show',
    progress: 'show',
    ...position,
  },
  'approval.resolved': {
    type: 'show',
    operationId: 'show',
    toolCallId: 'show',
    decision: 'show',
    reason: 'leave out',
    ...position,
  },
  'message.reset': { type: 'show', fromSeq: 'show', ...position },
  'turn.completed': {
    type: 'show',
    stopReason: 'show',
    usage,
    messageId: 'show',
    output: 'show',
    error,
    ...position,
  },
  'context.compacted': {
    type: 'show',
    operationId: 'show',
    untilTurn: 'show',
    tokensBefore: 'show',
    tokensAfter: 'show',
    summary: () => '',
    model: nothing,
    usage: nothing,
    ...position,
  },
};

/** A chunk as a token reads it. */
export function chunkForToken(chunk: Chunk): Chunk {
  return viewed(chunkViews[chunk.type] as View<Chunk>, chunk);
}

const envelope = (value: Envelope): Envelope =>
  viewed<Envelope>(
    {
      event: 'show',
      environment: 'show',
      sessionId: 'show',
      agentId: 'show',
      cursor: 'show',
      timestamp: 'show',
      chunks: list(chunkForToken),
    },
    value,
  );

const part = (value: MessagePart): MessagePart =>
  value.type === 'tool_result' && value.error !== undefined ? { ...value, error: FAILED_CALL() } : value;
const message = (value: Message): Message =>
  viewed<Message>(
    { messageId: 'show', role: 'show', turn: 'show', content: list(part), rejected: 'show', createdAt: 'show' },
    value,
  );

const operation = (value: TurnOperation): TurnOperation =>
  viewed<TurnOperation>(
    {
      operationId: 'show',
      kind: 'show',
      name: (name, { kind }) => (kind === 'tool' || kind === 'approval' ? name : kind),
      step: 'show',
      status: 'show',
      startedAt: 'show',
      endedAt: 'show',
      toolCallId: 'show',
      childSessionId: nothing,
      toolType: 'show',
      error: nullable(FAILED_CALL),
      firstTokenAt: 'show',
      attempts: () => [],
      usage: nothing,
      compaction: nothing,
    },
    value,
  );

const turn = (value: SessionTurn): SessionTurn =>
  viewed<SessionTurn>(
    {
      turn: 'show',
      agentVersion: 'show',
      status: 'show',
      stopReason: 'show',
      error: nullable(error),
      startedAt: 'show',
      endedAt: 'show',
      usage,
      unavailableToolServers: () => [],
      toolsLeftOut: () => [],
      operations: list(operation),
    },
    value,
  );

const approval = (value: Approval): Approval =>
  viewed<Approval>(
    {
      operationId: 'show',
      toolCallId: 'show',
      sessionId: 'show',
      agentId: 'show',
      environment: 'show',
      name: 'show',
      input: 'show',
      allowsSession: () => false,
      editedInput: 'show',
      status: 'show',
      reason: nothing,
      by: nullable(by),
      decisions: () => [],
      progress: 'show',
      refusal: 'show',
      resolvedBy: nothing,
      requestedAt: 'show',
      resolvedAt: 'show',
      expiresAt: 'show',
      context: 'leave out',
    },
    value,
  );

const file = (value: StoredFile): StoredFile =>
  viewed<StoredFile>(
    {
      fileId: 'show',
      environment: 'show',
      filename: 'show',
      mediaType: 'show',
      bytes: 'show',
      sha256: 'show',
      sessionId: nothing,
      uploadedBy: nothing,
      createdAt: 'show',
    },
    value,
  );

/** The routes that tokens reach. */
export type TokenRouteName = {
  [N in RouteName]: Routes[N] extends { token: string } ? N : never;
}[RouteName];

type Streamed = { [N in TokenRouteName]: Routes[N] extends { stream: string } ? N : never }[TokenRouteName];

const page =
  <T>(view: (value: T) => T) =>
  <P extends { data: T[] }>(value: P): P => ({ ...value, data: value.data.map(view) });
const oneSession = <R extends { session: Session }>(value: R): R => ({ ...value, session: session(value.session) });

/** The result of each route as a token gets it. The chunks of the stream are viewed where they are written. */
export const tokenViews: {
  readonly [N in Exclude<TokenRouteName, Streamed>]: (result: Result<N>) => Result<N>;
} = {
  openSession: oneSession,
  listSessions: page(listedSession),
  getSession: oneSession,
  forkSession: oneSession,
  sendMessage: oneSession,
  listMessages: page(message),
  listTurns: page(turn),
  sendToolResult: oneSession,
  interruptSession: oneSession,
  retrySession: oneSession,
  listChunks: page(envelope),
  uploadFile: (value) => ({ file: file(value.file) }),
  getFile: (value) => ({ file: file(value.file) }),
  listApprovals: page(approval),
  getApproval: (value) => ({ approval: approval(value.approval) }),
  resolveApproval: (value) => ({ approval: approval(value.approval) }),
};
