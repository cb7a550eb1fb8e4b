/** React hooks for sessions of Signalbox. No runtime dependency but React and the client. */
export {
  type AssistantMessage,
  type AssistantPart,
  type ChatStatus,
  createSessionStore,
  type DecideOptions,
  type FileMessagePart,
  type MessageContent,
  type NewSession,
  type PendingApproval,
  type ReasoningPart,
  type RetryOptions,
  type SendOptions,
  type SessionActions,
  type SessionFailure,
  type SessionMessage,
  type SessionSnapshot,
  type SessionStore,
  type SessionStoreOptions,
  type TextPart,
  type ToolApproval,
  type ToolPart,
  type ToolState,
  type UserMessage,
} from '@signalbox/client/conversation';
export type { Access, UseSessionOptions } from './registry.ts';
export { type UseSession, useSession } from './use-session.ts';
