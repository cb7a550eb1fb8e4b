/** The TypeScript client of Signalbox. No runtime dependency; Node 22.19 or later, and other runtimes with `fetch`. */
import { receiver } from './receiver.ts';
import { createSigningSecret, isSigningSecret, sign } from './sign.ts';
import { verify } from './webhooks.ts';

export { Signalbox } from './client.ts';
export { EnvironmentStream, type EnvironmentStreamParams } from './environment-stream.ts';
export {
  AuthenticationError,
  BadRequestError,
  type ClientErrorCode,
  ConflictError,
  ConnectionError,
  NotFoundError,
  PermissionError,
  RateLimitError,
  ServerError,
  SignalboxError,
  TimeoutError,
  UnprocessableError,
} from './errors.ts';
export {
  type EventChainProblem,
  type EventCheckpoint,
  type EventVerification,
  type VerifyEventsOptions,
  verifyEvents,
} from './event-chain.ts';
export { toEventStreamResponse } from './event-stream-response.ts';
export { Page, PageRequest } from './page.ts';
export type { Delivery, NodeRequest, NodeResponse, Receiver, ReceiverOptions } from './receiver.ts';
export type { ApproveParams, DenyParams } from './resources/approvals.ts';
export type { EventFilters, EventTypePattern } from './resources/events.ts';
export type { ContentRange, UploadParams } from './resources/files.ts';
export type { ChunksParams, OpenSessionParams } from './resources/sessions.ts';
export type { SignOptions } from './sign.ts';
export type { StreamNodeResponse, StreamRequest, StreamResponseOptions } from './sse-response.ts';
export { SessionStream, type StreamParams } from './stream.ts';
export type { Sleep } from './time.ts';
export type { GetToken } from './token-source.ts';
export type { BrowserSession, ClientOptions, RequestOptions } from './transport.ts';
export type * from './types.generated.ts';
export type { FileBytes, UploadProgress } from './upload.ts';
export { version } from './version.ts';
export {
  type HeadersLike,
  type VerifyOptions,
  WebhookVerificationError,
  type WebhookVerificationReason,
} from './webhooks.ts';
export type { ToolFunction } from './workers/calls.ts';
export { ToolDeniedError, ToolFailedError, TurnFailedError, TurnLostError } from './workers/errors.ts';
export type { RunOptions, TurnResult } from './workers/run.ts';
export type { CallToolOptions, Turn } from './workers/turn.ts';

/** For receivers of webhooks and their tests, which need no client and no API key. */
export const webhooks = { verify, receiver, sign, createSigningSecret, isSigningSecret } as const;
