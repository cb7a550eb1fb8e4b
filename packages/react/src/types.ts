/** What a page shows of a session. Everything here is immutable: an object that has not changed is the same object as before. */
import type { Decision, FilePart, SessionError, SessionStatus, SignalboxError, StopReason } from '@signalbox/client';

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
 * - `running`: in progress. → one of the ends
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
  state: ToolState;
  /** undefined until the model has written all of it. */
  input: unknown;
  /** The beginning of the input, as JSON, while the model writes it. */
  inputText: string | null;
  /** Whether an approver replaced the model's input, so `input` is the approver's. */
  isEdited: boolean;
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
}

/** A tool call that waits for a decision. */
export interface PendingApproval {
  operationId: string;
  toolCallId: string;
  tool: string;
  input: unknown;
  expiresAt: string | null;
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
   * - `session`: the session can't be read: it does not exist, or the token does not reach it.
   * - `message`: a message was refused.
   * - `action`: another call was refused: a decision, a tool result, a stop, earlier messages.
   * - `turn`: the last turn failed.
   */
  of: 'session' | 'message' | 'action' | 'turn';
  /** For programs: a code of the service, or of the client. */
  code: string;
  /** For people. */
  message: string;
  /** The error of the call; absent for a failed turn. */
  cause?: SignalboxError | Error;
}
