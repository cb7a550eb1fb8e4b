/** What a page shows of a session. Everything here is immutable: an object that has not changed is the same object as before. */
import type {
  ApprovalProgress,
  Approvers,
  Decision,
  FilePart,
  OpenSession,
  RetryWithout,
  SendMessage,
  SessionError,
  SessionStatus,
  Source,
  StopReason,
  WaitingFor,
} from '../types.generated.ts';

/** A message of the user, or everything that the agent did in one turn. */
export type SessionMessage = UserMessage | AssistantMessage;

export interface UserMessage {
  role: 'user';
  /** Unique in the session and never changes, also while the message is sent: use it as the React key. */
  id: string;
  /** `msg_…`; null until the service has stored the message. */
  messageId: string | null;
  /** null: its turn has not started. */
  turn: number | null;
  parts: readonly (TextPart | FileMessagePart)[];
  /**
   * - `sending`: not yet stored; repeated by itself while the network is down. → sent, failed
   * - `sent`: stored; its turn follows.
   * - `failed`: refused, as `error` of the session says. `retry` sends it again.
   */
  status: 'sending' | 'sent' | 'failed';
  /** When the service stored it, ISO 8601; null until then. */
  createdAt: string | null;
}

export interface AssistantMessage {
  role: 'assistant';
  /** `turn_<n>`. */
  id: string;
  turn: number;
  /** In the order in which they began. */
  parts: readonly AssistantPart[];
  /** `streaming`: the turn is in progress, or waits for something. `done`: it has ended. */
  status: 'streaming' | 'done';
  /** Why the turn ended; null until then, and for a turn whose end was not read, such as one further back. */
  stopReason: StopReason | null;
  /** Why the turn failed. */
  error: SessionError | null;
}

export type AssistantPart = TextPart | ReasoningPart | ToolPart;

export interface TextPart {
  type: 'text';
  /** Unique in its message. */
  id: string;
  text: string;
  /** More text may follow. */
  isStreaming: boolean;
  /** What the text cites, once it is complete. Absent if that is nothing. A link to a source needs `rel="noopener noreferrer"`. */
  sources?: readonly Source[];
}

/** The model's reasoning, if its agent shows it. It is not kept: a page that is loaded later does not have it. */
export interface ReasoningPart {
  type: 'reasoning';
  id: string;
  text: string;
  isStreaming: boolean;
}

/** A file that the user attached. */
export interface FileMessagePart {
  type: 'file';
  id: string;
  file: Pick<FilePart, 'fileId'> & Partial<FilePart>;
}

/**
 * The state of a tool call.
 *
 * - `input`: the model is writing the input (`inputText`). → approval, running
 * - `approval`: waits for a decision (`approval`). → running, or one of the ends
 * - `running`: in progress, or about to start. → result, one of the ends
 * - `result`: a `client` tool, which this page or another program runs: `toolResult` gives its result. → one of the ends
 * - `done`: `output` has what the tool returned.
 * - `failed`: `error` says why.
 * - `denied`: not approved in time, denied, or cancelled before it started; `error` has what the model received.
 * - `unknown`: interrupted while it ran. It may or may not have taken effect.
 */
export type ToolState = 'input' | 'approval' | 'running' | 'result' | 'done' | 'failed' | 'denied' | 'unknown';

export interface ToolPart {
  type: 'tool';
  /** The id of the call, `call_…`. */
  id: string;
  tool: string;
  /** The model's provider ran the call itself, such as a web search: it is no tool of the agent, and has its result already. */
  by?: 'provider';
  state: ToolState;
  /** undefined until the model has written all of it. */
  input: unknown;
  /** The beginning of the input, as JSON, while the model writes it. */
  inputText: string | null;
  /** Whether an approver replaced the model's input, so `input` is the approver's. */
  isEdited: boolean;
  /** The model's input, if an approver replaced it. */
  modelInput: unknown;
  /** Whether the call has started, or is for a client to run. One that is approved may wait for the decisions on others. */
  isStarted: boolean;
  approval: ToolApproval | null;
  output: unknown;
  error: string | null;
  /** Files that the tool returned. */
  files: readonly FilePart[];
}

export interface ToolApproval {
  /** `op_…`, for `decide`. */
  operationId: string;
  decision: 'pending' | Decision;
  reason: string | null;
  /** ISO 8601; null: it does not expire. */
  expiresAt: string | null;
  /** Who may decide; null: all people and keys that can decide approvals, but no end user. */
  by: Approvers | null;
  /** How many have approved, if it takes several. */
  progress: ApprovalProgress | null;
}

/** A tool call that waits for a decision. */
export interface PendingApproval {
  operationId: string;
  toolCallId: string;
  tool: string;
  input: unknown;
  expiresAt: string | null;
  by: Approvers | null;
  progress: ApprovalProgress | null;
  /** `decide` is in progress. */
  isDeciding: boolean;
}

/**
 * - `loading`: nothing of the session has been read yet.
 * - `new`: no session exists yet; the first message opens it.
 * - otherwise the status of the session.
 */
export type ChatStatus = 'loading' | 'new' | SessionStatus;

/** What went wrong last. `retry` repeats what failed. */
export interface SessionFailure {
  /**
   * - `session`: the session can't be read: it does not exist, the token does not reach it, or there is no token.
   * - `message`: a message was refused.
   * - `action`: another call was refused: a decision, a tool result, a stop, earlier messages.
   * - `turn`: the last turn failed.
   */
  of: 'session' | 'message' | 'action' | 'turn';
  /** For programs: a code of the service, or of the client. */
  code: string;
  /** For people. */
  message: string;
  /** What the provider of a failed turn refuses, for `retry({ without })`. Absent if that is not known, or can't be left out. */
  retryWithout?: RetryWithout;
  /** The error of the call, usually a `SignalboxError`; absent for a failed turn. */
  cause?: Error;
}

/** What a page shows of a session. */
export interface SessionSnapshot {
  /** null until the first message has opened the session. */
  sessionId: string | null;
  /** Oldest first. */
  messages: readonly SessionMessage[];
  status: ChatStatus;
  /** A message is being sent, or the agent is working on one. */
  isBusy: boolean;
  /** What a waiting session waits for. */
  waitingFor: WaitingFor | null;
  pendingApprovals: readonly PendingApproval[];
  /** What went wrong last; null as soon as it works again. */
  error: SessionFailure | null;
  /**
   * - `connecting`: the stream is not open yet.
   * - `lost`: the network or the service is down. It is tried again by itself; what is shown stays.
   * - `closed`: the session has ended, has not been opened, or can't be read.
   */
  connection: 'connecting' | 'open' | 'lost' | 'closed';
  /** There are messages before the first one: `loadEarlier`. */
  hasEarlier: boolean;
  isLoadingEarlier: boolean;
}

/** The session that the first message opens. `endUser` is not needed with a token, which names the end user. */
export type NewSession = Omit<OpenSession & { agentId: string }, 'input' | 'draft'>;

/** Text, or parts that are text or files which were uploaded before (`client.files.upload`). */
export type MessageContent = SendMessage['content'];

export interface SendOptions {
  /**
   * If the agent is working: `queue` (default) starts a turn afterwards, `steer` stops the current turn for this message, `reject`
   * refuses the message.
   */
  onBusy?: SendMessage['onBusy'];
}

export interface DecideOptions {
  /** The model sees the reason of a denial. */
  reason?: string;
  /** With `approved`: the complete input to use instead. */
  input?: unknown;
  /** With `approved`: `session` also approves later calls of this tool in this session. Default: `once`. */
  scope?: 'once' | 'session';
}

export interface RetryOptions {
  /** What models do not get from now on: `error.retryWithout`. Only if the last turn failed. */
  without?: RetryWithout | undefined;
}

/** None of these rejects: each resolves with whether it succeeded, and `error` says why it did not. */
export interface SessionActions {
  /** Sends a message; the first one opens the session. It is shown at once, and sent when the network allows it. */
  send: (content: MessageContent, options?: SendOptions) => Promise<boolean>;
  /** Stops the current turn. */
  stop: () => Promise<boolean>;
  /** Decides a tool call of `pendingApprovals`. */
  decide: (operationId: string, decision: 'approved' | 'denied', options?: DecideOptions) => Promise<boolean>;
  /** Gives the result of a call of a `client` tool, which is a part with the state `result`. */
  toolResult: (toolCallId: string, result: { output: unknown } | { error: string }) => Promise<boolean>;
  /** Repeats what failed: messages, the connection, or the last turn. */
  retry: (options?: RetryOptions) => Promise<boolean>;
  /** Loads a page of earlier messages. */
  loadEarlier: () => Promise<boolean>;
}
