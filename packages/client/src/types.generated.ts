// Generated from the contract by scripts/generate.ts; npm test compares.

export interface Actor {
  type: 'api_key' | 'user' | 'agent' | 'system';
  id: string | null;
  name: string;
}

export interface Agent {
  agentId: string;
  /** Every change makes a new version, which never changes again. */
  version: number;
  name: string;
  description: string;
  model: Model;
  instructions: string;
  tools: Tool[];
  limits: {
    maxStepsPerTurn: number;
    maxOutputTokens: number | null;
    turnTimeoutSeconds: number;
    approvalTimeoutSeconds: number | null;
    onApprovalTimeout: 'deny' | 'cancel';
  };
  outputSchema: JsonSchema | null;
  metadata: Metadata;
  createdAt: string;
  updatedAt: string;
  archivedAt: string | null;
}

export interface AgentTool {
  type: 'agent';
  /** What the model calls it by; unique in the Agent. */
  name: string;
  description: string;
  agentId: string;
  /** Default: `never`; the child asks for itself. */
  approval?: ApprovalPolicy | undefined;
}

export interface ApiKey {
  keyId: string;
  name: string;
  permission: Permission;
  /** From this instant on the key is refused; null: never. */
  expiresAt: string | null;
  /** The only addresses that the key may be used from, as addresses and CIDRs; null: any. */
  allowedIps: string[] | null;
  /** The only Environments that the key reaches; null: all. Such a key reads the Agents and changes nothing that all Environments share. */
  environments: string[] | null;
  metadata: Metadata;
  /** The beginning and the last four characters of the secret. */
  secretPreview: string;
  /** To the minute; null for a key never used. */
  lastUsedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface ApiKeyWithSecret {
  keyId: string;
  name: string;
  permission: Permission;
  /** From this instant on the key is refused; null: never. */
  expiresAt: string | null;
  /** The only addresses that the key may be used from, as addresses and CIDRs; null: any. */
  allowedIps: string[] | null;
  /** The only Environments that the key reaches; null: all. Such a key reads the Agents and changes nothing that all Environments share. */
  environments: string[] | null;
  metadata: Metadata;
  /** The beginning and the last four characters of the secret. */
  secretPreview: string;
  /** To the minute; null for a key never used. */
  lastUsedAt: string | null;
  createdAt: string;
  updatedAt: string;
  /** The whole secret, shown this once. Absent only from an idempotent replay asked for with another credential. */
  secret?: string;
}

export interface AppendToWorkerTurn {
  deltas: string[];
  /** The `cursor` of the worker turn or of the last append: the same text sent again after it is written once. Default: after what is there. */
  after?: string | undefined;
}

export interface Approval {
  /** Stored before it is announced, and never changes. */
  operationId: string;
  sessionId: string;
  agentId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  /** The tool that would run. */
  name: string;
  input: unknown;
  /** Whether approving it also lets later calls of this tool in this Session run unasked: the tool's policy is `once`. */
  allowsSession: boolean;
  /** The input that a person put in its place; null where nobody did. */
  editedInput: unknown;
  status: ApprovalStatus;
  reason: string | null;
  resolvedBy: ResolvedBy | null;
  requestedAt: string;
  resolvedAt: string | null;
  expiresAt: string | null;
}

/** `always`, `never`, `once` (once per Session and tool), or `{ "when": <JSON Schema> }`: where the input matches. Default: `always` for effectful tools, `never` for others. */
export type ApprovalPolicy = 'always' | 'never' | 'once' | ApprovalWhen;

export interface ApprovalRequestedChunk {
  type: 'approval.requested';
  operationId: string;
  /** The tool that would run. */
  name: string;
  input: unknown;
  toolCallId: string;
  expiresAt: string | null;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ApprovalResolvedChunk {
  type: 'approval.resolved';
  operationId: string;
  toolCallId: string;
  decision: Decision;
  reason?: string;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';

export interface ApprovalWhen {
  when: JsonSchema;
}

export interface AskedToolCall {
  tool: string;
  input: unknown;
}

export interface Budget {
  /** Input and output tokens together. */
  maxTokens?: number | undefined;
  /** Model calls; never passed. */
  maxSteps?: number | undefined;
  /** Needs a price for the model (422 `budget_invalid`). */
  maxCostUsd?: number | undefined;
}

export interface CallOutcome {
  toolCallId: string;
  /** The call's place in the `toolCalls` of the step's answer, from 0. */
  index: number;
  tool: string;
  /** `denied`: a person said no. `unknown`: it was cut off while it ran; it may have had its effect. */
  status: 'succeeded' | 'failed' | 'denied' | 'cancelled' | 'unknown';
  output?: unknown;
  /** What the model is told; for a denial with its reason. */
  error?: string;
}

export type Chunk = MessageChunk | SessionStatusChunk | ToolCallChunk | ToolResultChunk | ApprovalRequestedChunk | ApprovalResolvedChunk | MessageResetChunk | TurnCompletedChunk;

export type ChunkType = 'message.chunk' | 'session.status' | 'tool.call' | 'tool.result' | 'approval.requested' | 'approval.resolved' | 'message.reset' | 'turn.completed';

export interface ClaimWorkerTurn {
  queue: string;
  /** Only turns of Sessions in this Environment. */
  environment?: string | undefined;
  /** Only what comes next of this Session; 409 `turn_lost` where nothing can come any more. */
  sessionId?: string | undefined;
  /** With `sessionId`: only of this turn. */
  turn?: number | undefined;
  /** How long to wait for a turn. Default: `20`. */
  waitSeconds?: number | undefined;
}

export interface ClientTool {
  type: 'client';
  /** What the model calls it by; unique in the Agent. */
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** Whether a call changes something outside. Default: for `http` tools whether the method is not GET, for others false. */
  effectful?: boolean | undefined;
  approval?: ApprovalPolicy | undefined;
}

export interface CompleteWorkerTurn {
  /** Run together. None: the turn ends. */
  toolCalls?: AskedToolCall[] | undefined;
  /** For a worker turn with `pendingCalls`: how each of them ended. */
  toolResults?: ToolResult[] | undefined;
  usage?: WorkerUsage | undefined;
  /** Why the turn ends; without `toolCalls`. Default: `"endTurn"`. */
  stopReason?: 'endTurn' | 'maxOutputTokens' | 'refusal' | undefined;
  error?: WorkerTurnError | undefined;
}

export type Content = string | TextPart[];

export interface CreateAgent {
  name: string;
  model: Model | string;
  description?: string | undefined;
  instructions?: string | undefined;
  tools?: Tool[] | undefined;
  limits?: Limits | undefined;
  /** What the answer of a turn must be, as JSON; it stands in `turn.completed` as `output`. */
  outputSchema?: JsonSchema | null | undefined;
  metadata?: Metadata | undefined;
}

export interface CreateEnvironment {
  /** The name of an Environment, such as `production`. */
  name: string;
  /** How many days sessions are kept after they ended, with their transcript, journal and deliveries. The operator may have set less; null: as the operator set. */
  keepSessionsDays?: number | null | undefined;
}

export interface CreateInvitation {
  role: Role;
  email?: string | undefined;
  name?: string | undefined;
}

export interface CreateKey {
  name: string;
  permission: Permission;
  /** In the future; null or absent: never expires. */
  expiresAt?: string | null | undefined;
  /** The only addresses that the key may be used from, as addresses and CIDRs; null: any. */
  allowedIps?: string[] | null | undefined;
  /** The only Environments that the key reaches; null: all. Such a key reads the Agents and changes nothing that all Environments share. */
  environments?: string[] | null | undefined;
  metadata?: Metadata | undefined;
}

export interface CreateSchedule {
  agentId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  /** The first message of each Session; null: it is opened idle, without a turn. */
  input?: Content | null | undefined;
  /** Values of your own, which each of its Sessions is opened with. */
  metadata?: Metadata | undefined;
  /** Of each Session. */
  budget?: Budget | null | undefined;
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). Where both days are given either one counts; with `+` before the day of week both must. Exactly one of `cron` and `at`. */
  cron?: string | null | undefined;
  /** In which `cron` is read: an IANA name such as `Europe/Berlin`, or `UTC`, the default. Where clocks change, a time of day that does not exist runs when the gap ends and one that comes twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone?: string | null | undefined;
  /** The one instant at which it opens a Session, in the future. Exactly one of `cron` and `at`. */
  at?: string | null | undefined;
  status?: ScheduleStatus | undefined;
  /** Whether each Session is completed when its turn ends and no message is queued. Default: true. */
  closeOnIdle?: boolean | undefined;
}

export interface CreateWebhookSubscription {
  /** The name of an Environment, such as `production`. */
  environment: string;
  /** `https`, without user info, at a public address; `http` and private addresses where the operator allows them. Or `signalbox:test-receiver`, which is built in. */
  url: string;
  /** What is delivered. `message.reset` comes wherever `message.chunk` does. */
  chunkTypes?: ChunkType[] | undefined;
}

export interface CreatedInvitation {
  invitation: Invitation;
  /** To be handed over by other means; shown this once. Absent only from an idempotent replay of another sign-in. */
  link?: string;
}

export interface CreatedWebhookSubscription {
  webhookSubscription: WebhookSubscription;
  /** `whsec_` and 44 characters of base64, shown this once. Absent only from an idempotent replay asked for with another credential. */
  signingSecret?: string;
}

export type Decision = 'approved' | 'denied' | 'expired' | 'cancelled';

export interface Envelope {
  event: 'session.chunks';
  /** The name of an Environment, such as `production`. */
  environment: string;
  sessionId: string;
  agentId: string;
  /** The position of a chunk in its Session. */
  cursor: string;
  timestamp: string;
  chunks: Chunk[];
}

export interface Environment {
  environmentId: string;
  /** The name of an Environment, such as `production`. */
  name: string;
  /** How many days sessions are kept after they ended, with their transcript, journal and deliveries. The operator may have set less; null: as the operator set. */
  keepSessionsDays: number | null;
  createdAt: string;
}

export interface EnvironmentSecret {
  name: string;
  /** The only hosts that requests with this secret go to: `api.example.com`, `*.example.com`, with or without a port. */
  allowedHosts: string[];
  /** Counts up each time the secret is set. */
  version: number;
  updatedAt: string;
}

export type ErrorCode = 'invalid_request' | 'invalid_cursor' | 'missing_token' | 'malformed_token' | 'invalid_token' | 'token_expired' | 'token_rotated' | 'token_revoked' | 'signed_out' | 'sign_in_failed' | 'insufficient_permission' | 'person_required' | 'sign_in_again' | 'csrf_refused' | 'ip_not_allowed' | 'not_found' | 'link_invalid' | 'request_timeout' | 'conflict' | 'email_taken' | 'last_owner' | 'subscription_exists' | 'environment_exists' | 'idempotency_conflict' | 'idempotency_in_progress' | 'session_ended' | 'session_busy' | 'approval_already_resolved' | 'turn_lost' | 'agent_archived' | 'payload_too_large' | 'uri_too_long' | 'unsupported_media_type' | 'url_not_allowed' | 'budget_invalid' | 'rate_limited' | 'headers_too_large' | 'internal_error' | 'unavailable';

export interface Event {
  eventId: string;
  /** Counts from 1 in the organization, without gaps. */
  sequence: number;
  type: EventType;
  occurredAt: string;
  outcome: 'success' | 'denied' | 'failure';
  actor: Actor;
  resource: EventResource;
  environment: string | null;
  sessionId: string | null;
  /** `{ field: [before, after] }`. Never holds a secret; a value longer than 4,096 characters stands as its size and SHA-256, `{ bytes, sha256 }`. */
  changes: Record<string, [unknown, unknown]> | null;
  context: EventContext;
  /** Of the record before; 64 zeros for the first. */
  previousHash: string;
  /** Lowercase hex of SHA-256 over the bytes of `previousHash` and the canonical JSON (RFC 8785) of the record without both hashes. */
  hash: string;
}

export interface EventContext {
  requestId: string | null;
  ipAddress: string | null;
  userAgent: string | null;
}

export interface EventResource {
  type: string;
  id: string;
}

export type EventType = 'api_key.created' | 'api_key.updated' | 'api_key.rotated' | 'api_key.deleted' | 'agent.created' | 'agent.updated' | 'agent.archived' | 'environment.created' | 'environment.updated' | 'environment.deleted' | 'environment_secret.set' | 'environment_secret.deleted' | 'session.created' | 'session.updated' | 'session.interrupted' | 'session.closing' | 'session.deleted' | 'session.waiting' | 'session.idle' | 'session.completed' | 'session.failed' | 'session.cancelled' | 'tool_call.outcome_unknown' | 'tool_server.unavailable' | 'tool_server.available' | 'approval.requested' | 'approval.resolved' | 'schedule.created' | 'schedule.updated' | 'schedule.deleted' | 'schedule.opened' | 'schedule.missed' | 'schedule.failed' | 'webhook_subscription.created' | 'webhook_subscription.updated' | 'webhook_subscription.deleted' | 'webhook_subscription.secret_rotated' | 'webhook_subscription.secret_confirmed' | 'webhook_subscription.degraded' | 'webhook_subscription.disabled' | 'webhook_subscription.enabled' | 'webhook_delivery.exhausted' | 'webhook_delivery.resent' | 'webhook_delivery.recovered' | 'organization.created' | 'organization.updated' | 'user.invited' | 'user.invitation_withdrawn' | 'user.joined' | 'user.role_changed' | 'user.removed' | 'user.signed_in' | 'user.sign_in_failed' | 'user.signed_out' | 'user.password_reset_requested' | 'user.password_reset' | 'user.password_changed' | 'user.passkey_added' | 'user.passkey_removed' | 'user.provider_connected' | 'user.provider_disconnected' | 'access.denied';

export interface FieldError {
  path: string;
  message: string;
}

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `{{input.x}}` and `{{secrets.NAME}}` may stand in path and query, never in scheme, host or port. */
  url: string;
  headers?: Record<string, string> | undefined;
  /** JSON. A string that is a lone `"{{input.n}}"` keeps the JSON type of what it stands for. */
  body?: unknown;
}

export interface HttpTool {
  type: 'http';
  /** What the model calls it by; unique in the Agent. */
  name: string;
  description: string;
  inputSchema: JsonSchema;
  request: HttpRequest;
  /** Whether a call changes something outside. Default: for `http` tools whether the method is not GET, for others false. */
  effectful?: boolean | undefined;
  approval?: ApprovalPolicy | undefined;
  /** Whether a call may be repeated after a crash. Default: false. */
  idempotent?: boolean | undefined;
  /** Default: `30`. */
  timeoutSeconds?: number | undefined;
}

/** A link that nobody has used yet. */
export interface Invitation {
  invitationId: string;
  role: Role;
  /** The only e-mail that may accept it; null: any. */
  email: string | null;
  name: string | null;
  /** The name of who made it. */
  invitedBy: string;
  expiresAt: string;
  createdAt: string;
}

/** A JSON Schema (draft 2020-12) of an object. */
export type JsonSchema = Record<string, unknown>;

export interface LastScheduleRun {
  scheduledAt: string;
  status: ScheduleRunStatus;
  /** The Session that was opened; null unless `opened`. */
  sessionId: string | null;
}

export interface Limits {
  /** Default: `20`. */
  maxStepsPerTurn?: number | undefined;
  /** For one model call; null: the model decides. */
  maxOutputTokens?: number | null | undefined;
  /** How long a turn may run; time spent `waiting` does not count. Default: `600`. */
  turnTimeoutSeconds?: number | undefined;
  /** How long a person has to decide; null: for ever. */
  approvalTimeoutSeconds?: number | null | undefined;
  /** `deny`: the call is refused and the turn goes on. `cancel`: the Session is cancelled. Default: `"deny"`. */
  onApprovalTimeout?: 'deny' | 'cancel' | undefined;
}

export interface McpTool {
  type: 'mcp';
  /** Stands before the names of the server's tools; unique in the Agent. */
  name: string;
  /** Where the server answers. */
  url: string;
  /** Sent with every request; `{{secrets.NAME}}` may stand in them. */
  headers?: Record<string, string> | undefined;
  /** The server's own names of the tools to offer. Default: all. */
  allowedTools?: string[] | undefined;
  /** One policy for all, or one for each of the server's tools by its own name. Default: `never` for tools that the server marks as read-only, else `always`. */
  approval?: ApprovalPolicy | Record<string, ApprovalPolicy> | undefined;
  /** Default: `30`. */
  timeoutSeconds?: number | undefined;
}

export interface Me {
  organization: {
    organizationId: string;
    name: string;
  };
  apiKey: ApiKey | null;
  /** A person who signs in to the console. */
  user: User | null;
  permission: Permission;
}

export interface Member {
  userId: string;
  name: string;
  email: string;
  role: Role;
  joinedAt: string;
  /** Null for who never was since joining. */
  lastSignedInAt: string | null;
}

export interface Message {
  messageId: string;
  role: 'user' | 'assistant' | 'tool';
  /** null for a message whose turn has not begun. */
  turn: number | null;
  content: MessagePart[];
  createdAt: string;
}

export interface MessageChunk {
  type: 'message.chunk';
  delta: string;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export type MessagePart = TextPart | ToolCallPart | ToolResultPart;

export interface MessageResetChunk {
  type: 'message.reset';
  /** Drop this turn's `message.chunk`s from this `seq` on: the model was asked again. */
  fromSeq: number;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

/** Values of your own: at most 50, keys up to 64 characters, strings up to 512. */
export type Metadata = Record<string, string | number | boolean | null>;

export interface Model {
  provider: 'scripted' | 'openai' | 'anthropic' | 'google' | 'openai-compatible' | 'worker';
  /** The provider's name for it; for all but `worker`. */
  model?: string | undefined;
  /** For `worker`: the queue that the program claims turns from. */
  queue?: string | undefined;
  /** Where the provider answers, up to and with `/v1`. Needed for `openai-compatible`; others have their provider's own. */
  baseUrl?: string | undefined;
  /** The Environment's secret that holds the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`. */
  apiKeySecret?: string | undefined;
  settings?: ModelSettings | undefined;
}

export interface ModelCallUsage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  costUsd: number | null;
}

export interface ModelSettings {
  /** For `scripted`: one step a model call, the last one repeated. */
  script?: ScriptStep[] | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  seed?: number | undefined;
  stopSequences?: string[] | undefined;
  /** How much the model thinks before it answers, in its own measure. Default: as its provider has it. */
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | undefined;
}

export interface OpenSession {
  agentId: string;
  /** Stay on this version; else the newest each turn. */
  agentVersion?: number | undefined;
  /** The name of an Environment, such as `production`. */
  environment: string;
  input?: Content | undefined;
  metadata?: Metadata | undefined;
  budget?: Budget | null | undefined;
  /** Complete the Session when a turn ends and no message is queued. */
  closeOnIdle?: boolean | undefined;
}

export interface Organization {
  organizationId: string;
  name: string;
  createdAt: string;
}

/** As it is now. Counting stops at 10000, which stands for that or more. */
export interface Overview {
  sessions: {
    idle: number;
    running: number;
    waiting: number;
    /** In the last 24 hours. */
    completed: number;
    /** In the last 24 hours. */
    failed: number;
    /** In the last 24 hours. */
    cancelled: number;
  };
  pendingApprovals: number;
  webhooks: {
    /** Enabled subscriptions for which nothing can be sent (`health.blockedBy`), among the 1,000 newest. One that also fails is counted there too. */
    blocked: number;
    /** Enabled subscriptions whose destination fails, for less than a day. */
    failing: number;
    /** Those that fail for longer. */
    degraded: number;
    /** Those that the service has disabled. */
    disabled: number;
    /** Deliveries that wait for a retry. */
    waitingDeliveries: number;
  };
  /** API keys that expire within 14 days. */
  keysExpiringSoon: number;
}

export interface PageInfo {
  /** Whether more can be read after `nextCursor` now. */
  hasMore: boolean;
  /** Where to go on, also when `hasMore` is false; `""` only where nothing was ever listed. */
  nextCursor: string;
}

export interface PasswordReset {
  /** To be handed over by other means; shown this once. Absent only from an idempotent replay of another sign-in. */
  link?: string;
  expiresAt: string;
}

export interface PendingCall {
  toolCallId: string;
  /** The call's place in the `toolCalls` of the step's answer, from 0. */
  index: number;
  tool: string;
  /** As it is to be used: where a person edited it, theirs. */
  input: unknown;
}

/** `read` lists and reads, `write` also changes, `admin` also manages API keys and secrets. */
export type Permission = 'read' | 'write' | 'admin';

export interface Problem {
  /** Where the code is explained, relative to the service. */
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  requestId: string;
  errors?: FieldError[];
}

export interface ReceivedWebhook {
  deliveryId: string;
  attempt: number;
  /** Its signature is that of a secret which was good when it came. */
  verified: boolean;
  receivedAt: string;
  /** By their names in lower case. */
  headers: Record<string, string>;
  /** The exact bytes; of more than 64 KiB the first. */
  body: string;
  /** The body had more than 64 KiB. */
  truncated: boolean;
}

export type RecoverDeliveries = RecoverSince | RecoverSession;

export interface RecoverSession {
  sessionId: string;
  /** The position of a chunk in its Session. */
  cursor: string;
}

export interface RecoverSince {
  since: string;
}

export interface ResolveApproval {
  decision: 'approved' | 'denied';
  /** A denial reaches the model with it. */
  reason?: string | undefined;
  /** With `approved`: the input to use instead, as a whole. It must match the tool's schema. */
  input?: unknown;
  /** With `approved`: `session` also lets later calls of this tool in this Session run unasked. Default: `"once"`. */
  scope?: 'once' | 'session' | undefined;
  onBehalfOf?: string | undefined;
}

export interface ResolvedBy {
  type: 'api_key' | 'user' | 'system';
  id: string | null;
  name: string;
  /** The integrator's own user, as the caller named it. */
  onBehalfOf: string | null;
}

/** `viewer` reads, `member` also changes, `admin` also manages keys, secrets and people, `owner` also makes and removes owners. */
export type Role = 'viewer' | 'member' | 'admin' | 'owner';

export interface RotateSecret {
  /** Default: `86400`. */
  gracePeriodSeconds?: number | undefined;
}

export interface RotatedSecret {
  /** `whsec_` and 44 characters of base64, shown this once. Absent only from an idempotent replay asked for with another credential. */
  signingSecret?: string;
  secretVersion: number;
  previousSecretExpiresAt: string | null;
}

export interface Schedule {
  scheduleId: string;
  agentId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  /** The first message of each Session; null: it is opened idle, without a turn. */
  input: Content | null;
  /** Values of your own, which each of its Sessions is opened with. */
  metadata: Metadata;
  /** Of each Session. */
  budget: Budget | null;
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). Where both days are given either one counts; with `+` before the day of week both must. Exactly one of `cron` and `at`. */
  cron: string | null;
  /** In which `cron` is read: an IANA name such as `Europe/Berlin`, or `UTC`, the default. Where clocks change, a time of day that does not exist runs when the gap ends and one that comes twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone: string | null;
  /** The one instant at which it opens a Session, in the future. Exactly one of `cron` and `at`. */
  at: string | null;
  status: ScheduleStatus;
  /** Whether each Session is completed when its turn ends and no message is queued. Default: true. */
  closeOnIdle: boolean;
  /** When it opens its next Session; null: paused, or `at` has passed. */
  nextAt: string | null;
  /** The newest occurrence; null before the first. */
  lastRun: LastScheduleRun | null;
  createdAt: string;
  updatedAt: string;
}

export interface ScheduleRun {
  scheduledAt: string;
  status: ScheduleRunStatus;
  /** The Session that was opened; null unless `opened`. */
  sessionId: string | null;
  /** Why it failed; null unless `failed`. */
  error: SessionError | null;
  /** When the service dealt with it. */
  createdAt: string;
}

/** `opened`: a Session was opened. `missed`: the service was not running, and a later occurrence came due before it was back. `failed`: the Session was refused. */
export type ScheduleRunStatus = 'opened' | 'missed' | 'failed';

/** `paused` opens nothing; enabling it again goes on from that moment, and makes up for nothing that came meanwhile. */
export type ScheduleStatus = 'enabled' | 'paused';

export interface ScriptStep {
  /** Streamed word by word. `{{input}}` is the last user message, `{{lastToolResult}}` the last tool result. */
  text?: string | undefined;
  toolCalls?: ScriptToolCall[] | undefined;
  /** Wait before each word. */
  tokenDelayMs?: number | undefined;
  failWith?: 'timeout' | 'rate_limited' | 'broken_stream' | 'refusal' | 'max_output_tokens' | undefined;
}

export interface ScriptToolCall {
  name: string;
  input?: unknown;
}

export interface SendMessage {
  content: Content;
  /** While a turn is under way: `queue` a turn of its own after it; `steer`: that turn ends as `interrupted` and this one comes next; or `reject` with 409 `session_busy`. Default: `"queue"`. */
  onBusy?: 'queue' | 'steer' | 'reject' | undefined;
}

export interface Session {
  sessionId: string;
  agentId: string;
  /** Of the present or last turn; null before the first. */
  agentVersion: number | null;
  /** The name of an Environment, such as `production`. */
  environment: string;
  status: SessionStatus;
  waitingFor: WaitingFor | null;
  stopReason: StopReason | null;
  /** 0 before the first turn. */
  turn: number;
  /** Of the last chunk; null before the first. */
  cursor: string | null;
  usage: Usage;
  budget: Budget | null;
  error: SessionError | null;
  metadata: Metadata;
  /** Of a child: the Session whose `agent` tool opened it. */
  parentSessionId: string | null;
  createdAt: string;
  updatedAt: string;
  endedAt: string | null;
}

export interface SessionError {
  code: string;
  message: string;
}

export type SessionStatus = 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export interface SessionStatusChunk {
  type: 'session.status';
  status: SessionStatus;
  waitingFor: WaitingFor | null;
  stopReason?: StopReason;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface SessionTurn {
  /** Counts from 1. */
  turn: number;
  /** The version of the Agent that it runs. */
  agentVersion: number;
  status: TurnStatus;
  /** null while it is under way, and of one that was cancelled. */
  stopReason: StopReason | null;
  startedAt: string;
  endedAt: string | null;
  usage: Usage;
  /** The `mcp` tools of the Agent whose server could not be asked for its tools when the turn needed them, by name, and why. */
  unavailableToolServers: UnavailableToolServer[];
  /** In order: step by step its model call, then the tool calls, each after its approval. */
  operations: TurnOperation[];
}

export interface SetSecret {
  value: string;
  allowedHosts: string[];
}

export type StopReason = 'endTurn' | 'maxOutputTokens' | 'maxSteps' | 'budgetReached' | 'refusal' | 'interrupted' | 'timedOut' | 'error';

export interface TextPart {
  type: 'text';
  text: string;
}

export type Tool = HttpTool | McpTool | ClientTool | AgentTool;

export interface ToolCallChunk {
  type: 'tool.call';
  tool: string;
  toolCallId: string;
  input: unknown;
  /** true: the call was refused and does not run; its `tool.result` says why. Never on a call of a `client` tool: a `tool.call` of one is always yours to run. */
  notRun?: boolean;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ToolCallPart {
  type: 'tool_call';
  toolCallId: string;
  tool: string;
  input: unknown;
}

/** Exactly one of `output` and `error`. */
export interface ToolResult {
  toolCallId: string;
  output?: unknown;
  error?: string | undefined;
}

export interface ToolResultChunk {
  type: 'tool.result';
  toolCallId: string;
  /** Of a call of a `client` tool that did not run, and so has no `tool.call`. */
  tool?: string;
  /** Beside `tool`. */
  input?: unknown;
  output?: unknown;
  error?: string;
  /** true: the call never ran. It was denied, expired or was cancelled before it began, its input did not match the schema, there is no such tool, or a token limit cut the answer. */
  notRun?: boolean;
  /** true: the call was cut off while it ran; it may or may not have had its effect. */
  outcomeUnknown?: boolean;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ToolResultPart {
  type: 'tool_result';
  toolCallId: string;
  /** What a person put in the place of the call's own input. */
  input?: unknown;
  output?: unknown;
  error?: string;
  outcomeUnknown?: boolean;
}

export interface TurnCompletedChunk {
  type: 'turn.completed';
  stopReason: StopReason;
  usage: Usage;
  output?: unknown;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface TurnOperation {
  /** An approval has that of the tool call that it is for. */
  operationId: string;
  kind: 'model' | 'tool' | 'approval';
  /** `provider/model` (`worker/queue` where a program of yours is the model), or the name of the tool. */
  name: string;
  /** Counts from 1 in the turn: a model call and the tool calls that it asked for. */
  step: number;
  status: TurnOperationStatus;
  /** null: it has not begun, or never did. */
  startedAt: string | null;
  endedAt: string | null;
  /** As in chunks and in the transcript; null of a model call. */
  toolCallId: string | null;
  /** Of a call of an `agent` tool: the Session that it opened. */
  childSessionId: string | null;
  /** Of a model call that was answered. */
  usage: ModelCallUsage | null;
}

export type TurnOperationStatus = 'running' | 'waiting' | 'succeeded' | 'failed' | 'unknown' | 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';

export type TurnStatus = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export interface UnavailableToolServer {
  name: string;
  reason: string;
}

export interface UpdateAgent {
  name?: string | undefined;
  model?: Model | string | undefined;
  description?: string | undefined;
  instructions?: string | undefined;
  tools?: Tool[] | undefined;
  limits?: Limits | undefined;
  /** What the answer of a turn must be, as JSON; it stands in `turn.completed` as `output`. */
  outputSchema?: JsonSchema | null | undefined;
  metadata?: Metadata | undefined;
  /** The newest version that you know. Where the Agent has a newer one, nothing changes: 409 `conflict`. */
  expectedVersion?: number | undefined;
}

export interface UpdateEnvironment {
  /** How many days sessions are kept after they ended, with their transcript, journal and deliveries. The operator may have set less; null: as the operator set. */
  keepSessionsDays?: number | null | undefined;
}

export interface UpdateKey {
  name?: string | undefined;
  permission?: Permission | undefined;
  /** The only addresses that the key may be used from, as addresses and CIDRs; null: any. */
  allowedIps?: string[] | null | undefined;
  /** The only Environments that the key reaches; null: all. Such a key reads the Agents and changes nothing that all Environments share. */
  environments?: string[] | null | undefined;
  metadata?: Metadata | undefined;
}

export interface UpdateMember {
  role: Role;
}

export interface UpdateOrganization {
  name: string;
}

/** A change of `cron`, `timezone`, `at` or `status` counts from now: an occurrence that is due and not dealt with is dropped. To go from one to the other, send `cron: null` with `at`, or `at: null` with `cron`. */
export interface UpdateSchedule {
  agentId?: string | undefined;
  /** The name of an Environment, such as `production`. */
  environment?: string | undefined;
  /** The first message of each Session; null: it is opened idle, without a turn. */
  input?: Content | null | undefined;
  /** Values of your own, which each of its Sessions is opened with. */
  metadata?: Metadata | undefined;
  /** Of each Session. */
  budget?: Budget | null | undefined;
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). Where both days are given either one counts; with `+` before the day of week both must. Exactly one of `cron` and `at`. */
  cron?: string | null | undefined;
  /** In which `cron` is read: an IANA name such as `Europe/Berlin`, or `UTC`, the default. Where clocks change, a time of day that does not exist runs when the gap ends and one that comes twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone?: string | null | undefined;
  /** The one instant at which it opens a Session, in the future. Exactly one of `cron` and `at`. */
  at?: string | null | undefined;
  status?: ScheduleStatus | undefined;
  /** Whether each Session is completed when its turn ends and no message is queued. Default: true. */
  closeOnIdle?: boolean | undefined;
}

export interface UpdateSession {
  metadata?: Metadata | undefined;
}

export interface UpdateWebhookSubscription {
  /** `https`, without user info, at a public address; `http` and private addresses where the operator allows them. Or `signalbox:test-receiver`, which is built in. */
  url?: string | undefined;
  /** What is delivered. `message.reset` comes wherever `message.chunk` does. */
  chunkTypes?: ChunkType[] | undefined;
  status?: 'enabled' | 'paused' | undefined;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  /** Model calls. */
  steps: number;
  toolCalls: number;
  costUsd: number | null;
}

export interface UsageGroup {
  /** A day such as `2026-01-31`, an `agentId`, the name of an Environment, or `provider/model` (`worker/queue` for Agents that a program of yours runs). */
  group: string;
  /** Cached ones included. */
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that the provider had in its cache. */
  cachedTokens: number;
  /** Model calls. */
  steps: number;
  /** Those of them that `costUsd` is without: their model had no price. */
  unpricedSteps: number;
  /** To a billionth of a dollar; null where no call had a price. */
  costUsd: number | null;
}

export interface UsageReport {
  /** The beginning of the UTC day of the `from` asked for. */
  from: string;
  /** The end of the UTC day of the `to` asked for; exclusive. */
  to: string;
  groupBy: 'day' | 'agent' | 'environment' | 'model';
  total: UsageSum;
  /** By day: every day in order, also those on which nothing was used. Else the groups that used something, the most expensive first, then those with the most tokens; at most 1,000. */
  data: UsageGroup[];
  /** The groups beyond 1,000 together; null where all are listed. */
  other: UsageSum | null;
}

/** Of the whole period: `data` and `other` together. */
export interface UsageSum {
  /** Cached ones included. */
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that the provider had in its cache. */
  cachedTokens: number;
  /** Model calls. */
  steps: number;
  /** Those of them that `costUsd` is without: their model had no price. */
  unpricedSteps: number;
  /** To a billionth of a dollar; null where no call had a price. */
  costUsd: number | null;
}

export interface User {
  userId: string;
  name: string;
  email: string;
}

export interface WaitingFor {
  type: 'approval' | 'toolResult' | 'session' | 'several';
  operationIds: string[];
  toolCallIds: string[];
  sessionIds: string[];
  expiresAt: string | null;
}

export interface WebhookAttempt {
  /** Counts from 1; as in the header `X-Service-Attempt`. */
  attempt: number;
  at: string;
  durationMs: number;
  /** The HTTP status of the answer; null: there was none. */
  status: number | null;
  /** What went wrong, as a class: `timeout`, `connect`, `not_allowed` … */
  error: string | null;
  secretVersion: number;
  /** By their names in lower case. */
  requestHeaders: Record<string, string>;
  /** The first 4 KiB of the answer. */
  responseBody: string | null;
}

export interface WebhookDelivery {
  deliveryId: string;
  webhookSubscriptionId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  sessionId: string;
  status: WebhookDeliveryStatus;
  /** What the receiver had acknowledged before; null: nothing. */
  previousCursor: string | null;
  /** The position of a chunk in its Session. */
  cursor: string;
  /** How many were made. */
  attemptCount: number;
  createdAt: string;
  /** When it is sent again, unless the destination fails and is probed: then with a probe, or when one was accepted. */
  nextAttemptAt: string | null;
  finishedAt: string | null;
}

export type WebhookDeliveryStatus = 'pending' | 'succeeded' | 'exhausted' | 'cancelled';

export interface WebhookDeliveryWithAttempts {
  deliveryId: string;
  webhookSubscriptionId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  sessionId: string;
  status: WebhookDeliveryStatus;
  /** What the receiver had acknowledged before; null: nothing. */
  previousCursor: string | null;
  /** The position of a chunk in its Session. */
  cursor: string;
  /** How many were made. */
  attemptCount: number;
  createdAt: string;
  /** When it is sent again, unless the destination fails and is probed: then with a probe, or when one was accepted. */
  nextAttemptAt: string | null;
  finishedAt: string | null;
  /** The last 50, oldest first. */
  attempts: WebhookAttempt[];
  /** The body, the same in every attempt to the byte; null where the journal holds it no more. */
  requestBody: string | null;
}

/** How the destination does, a second old at most. */
export interface WebhookHealth {
  state: 'healthy' | 'failing' | 'degraded' | 'blocked';
  /** Why nothing can be sent; null: attempts can be made. */
  blockedBy: 'no_delivery_node' | 'secret_unreadable' | 'url_not_allowed' | null;
  /** The same in words, and how to remove it. */
  reason: string | null;
  /** When the first attempt failed since one was accepted. */
  failingSince: string | null;
  /** Attempts that failed in a row. From the fifth on probes alone are counted. */
  consecutiveFailures: number;
  /** Of the last attempt, as its `error`; null: it was accepted. */
  lastError: string | null;
  /** The HTTP status of that attempt; null: there was no answer. */
  lastStatus: number | null;
  /** After 5 failures in a row: when one attempt is made; until one is accepted the others wait. */
  nextProbeAt: string | null;
  /** The one Session whose deliveries failed: while it is probed, the others go on. Null: none, or several. */
  failingSessionId: string | null;
}

export interface WebhookSubscription {
  webhookSubscriptionId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  url: string;
  /** What is delivered. `message.reset` comes wherever `message.chunk` does. */
  chunkTypes: ChunkType[];
  status: WebhookSubscriptionStatus;
  /** `gone`: the destination answered 410; `failing`: it has failed for 5 days. */
  disabledReason: string | null;
  /** Of the newest signing secret; counts from 1. */
  secretVersion: number;
  /** Until then the secret before signs too; null: there is none. */
  previousSecretExpiresAt: string | null;
  /** The newest version that the receiver accepted. */
  confirmedSecretVersion: number | null;
  createdAt: string;
  updatedAt: string;
  lastSuccessAt: string | null;
  lastFailureAt: string | null;
  health: WebhookHealth;
}

export type WebhookSubscriptionStatus = 'enabled' | 'paused' | 'disabled';

export interface WorkerTool {
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** Whether the program runs its calls itself (a `client` tool). */
  client: boolean;
}

export interface WorkerTurn {
  workerTurnId: string;
  sessionId: string;
  agentId: string;
  agentVersion: number;
  /** The name of an Environment, such as `production`. */
  environment: string;
  queue: string;
  turn: number;
  /** From 1 in each turn. */
  step: number;
  /** The position of a chunk in its Session. */
  cursor: string;
  instructions: string;
  /** The transcript, oldest first, with the calls and results of this turn's earlier steps. */
  messages: Message[];
  /** What the step may call; empty with `pendingCalls`. */
  tools: WorkerTool[];
  /** Where it is not empty, these calls are what the program is to do: run them, and complete with `toolResults`. Else it is to answer the step. */
  pendingCalls: PendingCall[];
  /** Of the calls of the step before, in their order. */
  outcomes: CallOutcome[];
  /** What the answer that ends the turn must be, as JSON. */
  outputSchema: JsonSchema | null;
  limits: {
    maxStepsPerTurn: number;
    maxOutputTokens: number | null;
    turnTimeoutSeconds: number;
    approvalTimeoutSeconds: number | null;
    onApprovalTimeout: 'deny' | 'cancel';
  };
  metadata: Metadata;
  leaseExpiresAt: string;
  /** When the turn has taken too long. */
  deadlineAt: string | null;
}

/** The step failed and is not tried again: the Session fails with it. */
export interface WorkerTurnError {
  /** Default: `worker_failed`. */
  code?: string | undefined;
  message: string;
}

/** What the step used; counts toward the budget. */
export interface WorkerUsage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens?: number | undefined;
  costUsd?: number | undefined;
}

/** Every operation of the interface: what it takes and what it answers with. */
export interface Operations {
  /** Who is calling. `GET /api/v1/me`, permission `read`. */
  getMe: {
    result: Me;
  };
  /** Create a key; its secret is shown in this answer alone. `POST /api/v1/api_keys`, permission `admin`. */
  createKey: {
    body: CreateKey;
    result: {
      apiKey: ApiKeyWithSecret;
    };
  };
  /** List the keys, newest first. `GET /api/v1/api_keys`, permission `admin`. */
  listKeys: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: ApiKey[];
      page: PageInfo;
    };
  };
  /** Read a key. `GET /api/v1/api_keys/{keyId}`, permission `admin`. */
  getKey: {
    params: {
      keyId: string;
    };
    result: {
      apiKey: ApiKey;
    };
  };
  /** Change name, permission, limits or metadata; the secret stays. `PATCH /api/v1/api_keys/{keyId}`, permission `admin`. */
  updateKey: {
    params: {
      keyId: string;
    };
    body: UpdateKey;
    result: {
      apiKey: ApiKey;
    };
  };
  /** Give the key a new secret; the old one is refused from then on. `POST /api/v1/api_keys/{keyId}/rotate`, permission `admin`. */
  rotateKey: {
    params: {
      keyId: string;
    };
    result: {
      apiKey: ApiKeyWithSecret;
    };
  };
  /** Revoke the key for good. `DELETE /api/v1/api_keys/{keyId}`, permission `admin`. */
  deleteKey: {
    params: {
      keyId: string;
    };
    result: {
      keyId: string;
      deleted: true;
    };
  };
  /** Create an Agent. `POST /api/v1/agents`, permission `write`. */
  createAgent: {
    body: CreateAgent;
    result: {
      agent: Agent;
    };
  };
  /** List the Agents, newest first. `GET /api/v1/agents`, permission `read`. */
  listAgents: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      /** true: archived Agents instead of live ones. */
      archived?: boolean | undefined;
    };
    result: {
      data: Agent[];
      page: PageInfo;
    };
  };
  /** Read an Agent in its newest version. `GET /api/v1/agents/{agentId}`, permission `read`. */
  getAgent: {
    params: {
      agentId: string;
    };
    result: {
      agent: Agent;
    };
  };
  /** List the versions of an Agent, newest first. `GET /api/v1/agents/{agentId}/versions`, permission `read`. */
  listAgentVersions: {
    params: {
      agentId: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: Agent[];
      page: PageInfo;
    };
  };
  /** Change an Agent: a new version. `PATCH /api/v1/agents/{agentId}`, permission `write`. */
  updateAgent: {
    params: {
      agentId: string;
    };
    body: UpdateAgent;
    result: {
      agent: Agent;
    };
  };
  /** Archive an Agent; a turn under way ends as usual. `DELETE /api/v1/agents/{agentId}`, permission `write`. */
  archiveAgent: {
    params: {
      agentId: string;
    };
    result: {
      agentId: string;
      deleted: true;
    };
  };
  /** List the Environments, newest first. `GET /api/v1/environments`, permission `read`. */
  listEnvironments: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: Environment[];
      page: PageInfo;
    };
  };
  /** Create an Environment. `POST /api/v1/environments`, permission `write`. */
  createEnvironment: {
    body: CreateEnvironment;
    result: {
      environment: Environment;
    };
  };
  /** Change how long the ended Sessions of an Environment are kept. `PATCH /api/v1/environments/{env}`, permission `admin`. */
  updateEnvironment: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    body: UpdateEnvironment;
    result: {
      environment: Environment;
    };
  };
  /** Delete an Environment without open Sessions, subscription and schedules. `DELETE /api/v1/environments/{env}`, permission `write`. */
  deleteEnvironment: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    result: {
      environmentId: string;
      deleted: true;
    };
  };
  /** List the secrets of an Environment, by name; never their values. `GET /api/v1/environments/{env}/secrets`, permission `admin`. */
  listSecrets: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: EnvironmentSecret[];
      page: PageInfo;
    };
  };
  /** Set a secret and the hosts that may get it. `PUT /api/v1/environments/{env}/secrets/{name}`, permission `admin`. */
  setSecret: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
      name: string;
    };
    body: SetSecret;
    result: {
      secret: EnvironmentSecret;
    };
  };
  /** Delete a secret. `DELETE /api/v1/environments/{env}/secrets/{name}`, permission `admin`. */
  deleteSecret: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
      name: string;
    };
    result: {
      name: string;
      deleted: true;
    };
  };
  /** Open a Session; with `input` its first turn begins at once. `POST /api/v1/sessions`, permission `write`. */
  openSession: {
    body: OpenSession;
    result: {
      session: Session;
    };
  };
  /** List the Sessions, newest first. `GET /api/v1/sessions`, permission `read`. */
  listSessions: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      status?: 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined;
      agentId?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      /** Only its child Sessions. */
      parentSessionId?: string | undefined;
      /** `metadata[key]=value`: Sessions whose metadata has this value, compared as text. Of several pairs, name first the one that the fewest Sessions have: those are read, newest first, until the page is full. A page takes longest if many Sessions have the pair and none of them matches another filter: some 80 ms for 30,000. */
      metadata?: Record<string, string> | undefined;
    };
    result: {
      data: Session[];
      page: PageInfo;
    };
  };
  /** Read a Session. `GET /api/v1/sessions/{sessionId}`, permission `read`. */
  getSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Change a Session's metadata. `PATCH /api/v1/sessions/{sessionId}`, permission `write`. */
  updateSession: {
    params: {
      sessionId: string;
    };
    body: UpdateSession;
    result: {
      session: Session;
    };
  };
  /** Delete an ended Session, its children and all of their data, for good. `DELETE /api/v1/sessions/{sessionId}`, permission `write`. */
  deleteSession: {
    params: {
      sessionId: string;
    };
    result: {
      sessionId: string;
      deleted: true;
    };
  };
  /** Say something: the next turn, now or after the present one. `POST /api/v1/sessions/{sessionId}/messages`, permission `write`. */
  sendMessage: {
    params: {
      sessionId: string;
    };
    body: SendMessage;
    result: {
      session: Session;
      messageId: string;
    };
  };
  /** Read the transcript, oldest first unless told otherwise. `GET /api/v1/sessions/{sessionId}/messages`, permission `read`. */
  listMessages: {
    params: {
      sessionId: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      /** Oldest or newest first. Messages whose turn has not begun are the newest, beside the `limit`. Default: `"asc"`. */
      order?: 'asc' | 'desc' | undefined;
    };
    result: {
      data: Message[];
      page: PageInfo;
    };
  };
  /** Read the timeline, newest turn first: what each turn did, when, and what it used. `GET /api/v1/sessions/{sessionId}/turns`, permission `read`. */
  listTurns: {
    params: {
      sessionId: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: SessionTurn[];
      page: PageInfo;
    };
  };
  /** Give the result of a client tool; the same again is 200, another is 409. `POST /api/v1/sessions/{sessionId}/tool_results`, permission `write`. */
  sendToolResult: {
    params: {
      sessionId: string;
    };
    body: ToolResult;
    result: {
      session: Session;
    };
  };
  /** Stop the turn; the next queued message follows, or the Session is idle. `POST /api/v1/sessions/{sessionId}/interrupt`, permission `write`. */
  interruptSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Complete the Session when its turn is over. `POST /api/v1/sessions/{sessionId}/close`, permission `write`. */
  closeSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Cancel the Session now. `POST /api/v1/sessions/{sessionId}/cancel`, permission `write`. */
  cancelSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Read the journal after a cursor, oldest first; `limit` counts chunks, of which long ones are fewer a page. `GET /api/v1/sessions/{sessionId}/chunks`, permission `read`. */
  listChunks: {
    params: {
      sessionId: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `100`. */
      limit?: number | undefined;
      /** Only what stands after this cursor, `turn_<n>:seq_<n>`; from the beginning without it. */
      cursor?: string | undefined;
      /** Only chunks of these types, comma separated. Cursors stay true. */
      types?: string | undefined;
    };
    result: {
      data: Envelope[];
      page: PageInfo;
    };
  };
  /** Follow the journal live; resumes after `cursor` or `Last-Event-ID`, 204 when nothing can follow. `GET /api/v1/sessions/{sessionId}/stream`, permission `read`. */
  streamSession: {
    params: {
      sessionId: string;
    };
    query: {
      /** Only what stands after this cursor, `turn_<n>:seq_<n>`; from the beginning without it. */
      cursor?: string | undefined;
      /** Only chunks of these types, comma separated. Cursors stay true. */
      types?: string | undefined;
    };
    result: Envelope;
  };
  /** List approvals over all Sessions. `GET /api/v1/approvals`, permission `read`. */
  listApprovals: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      /** By when they were requested: oldest or newest first. Default: `"asc"`. */
      order?: 'asc' | 'desc' | undefined;
      status?: 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled' | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      sessionId?: string | undefined;
    };
    result: {
      data: Approval[];
      page: PageInfo;
    };
  };
  /** Read an approval. `GET /api/v1/approvals/{operationId}`, permission `read`. */
  getApproval: {
    params: {
      operationId: string;
    };
    result: {
      approval: Approval;
    };
  };
  /** Approve or deny; the first decision wins. `POST /api/v1/approvals/{operationId}/resolve`, permission `write`. */
  resolveApproval: {
    params: {
      operationId: string;
    };
    body: ResolveApproval;
    result: {
      approval: Approval;
    };
  };
  /** Wait for a step that is offered on a queue, and claim it; null where none came. `POST /api/v1/worker_turns/claim`, permission `write`. */
  claimWorkerTurn: {
    body: ClaimWorkerTurn;
    result: {
      workerTurn: WorkerTurn | null;
    };
  };
  /** Keep a claimed step: without a heartbeat its lease runs out and it is offered again. `POST /api/v1/worker_turns/{workerTurnId}/heartbeat`, permission `write`. */
  heartbeatWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    result: {
      leaseExpiresAt: string;
    };
  };
  /** Show text of the step's answer; it is in the journal when this is answered. `POST /api/v1/worker_turns/{workerTurnId}/append`, permission `write`. */
  appendToWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    body: AppendToWorkerTurn;
    result: {
      /** The position of a chunk in its Session. */
      cursor: string;
    };
  };
  /** Answer the step: with tool calls, or without, which ends the turn; or give the results of its client tools. `POST /api/v1/worker_turns/{workerTurnId}/complete`, permission `write`. */
  completeWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    body: CompleteWorkerTurn;
    result: {
      workerTurnId: string;
      completed: true;
    };
  };
  /** Give a claimed step back: it is offered again at once, and text that it showed is void. `POST /api/v1/worker_turns/{workerTurnId}/release`, permission `write`. */
  releaseWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    result: {
      workerTurnId: string;
      released: true;
    };
  };
  /** Create a schedule, which opens a Session at each of its times. `POST /api/v1/schedules`, permission `write`. */
  createSchedule: {
    body: CreateSchedule;
    result: {
      schedule: Schedule;
    };
  };
  /** List the schedules, newest first. `GET /api/v1/schedules`, permission `read`. */
  listSchedules: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      agentId?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      status?: ScheduleStatus | undefined;
    };
    result: {
      data: Schedule[];
      page: PageInfo;
    };
  };
  /** Read a schedule. `GET /api/v1/schedules/{scheduleId}`, permission `read`. */
  getSchedule: {
    params: {
      scheduleId: string;
    };
    result: {
      schedule: Schedule;
    };
  };
  /** Change a schedule, pause it or enable it again; Sessions that it opened stay as they are. `PATCH /api/v1/schedules/{scheduleId}`, permission `write`. */
  updateSchedule: {
    params: {
      scheduleId: string;
    };
    body: UpdateSchedule;
    result: {
      schedule: Schedule;
    };
  };
  /** Delete a schedule and its runs; Sessions that it opened stay. `DELETE /api/v1/schedules/{scheduleId}`, permission `write`. */
  deleteSchedule: {
    params: {
      scheduleId: string;
    };
    result: {
      scheduleId: string;
      deleted: true;
    };
  };
  /** List what became of the occurrences of a schedule, newest first. `GET /api/v1/schedules/{scheduleId}/runs`, permission `read`. */
  listScheduleRuns: {
    params: {
      scheduleId: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      status?: ScheduleRunStatus | undefined;
    };
    result: {
      data: ScheduleRun[];
      page: PageInfo;
    };
  };
  /** List the subscriptions across Environments, newest first. `GET /api/v1/webhook_subscriptions`, permission `read`. */
  listWebhookSubscriptions: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
    };
    result: {
      data: WebhookSubscription[];
      page: PageInfo;
    };
  };
  /** Subscribe an Environment; its signing secret is shown in this answer alone. `POST /api/v1/webhook_subscriptions`, permission `write`. */
  createWebhookSubscription: {
    body: CreateWebhookSubscription;
    result: CreatedWebhookSubscription;
  };
  /** Read the subscription of an Environment. `GET /api/v1/webhook_subscriptions/{env}`, permission `read`. */
  getWebhookSubscription: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    result: {
      webhookSubscription: WebhookSubscription;
    };
  };
  /** Change url or chunk types, pause it or enable it again. `PATCH /api/v1/webhook_subscriptions/{env}`, permission `write`. */
  updateWebhookSubscription: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    body: UpdateWebhookSubscription;
    result: {
      webhookSubscription: WebhookSubscription;
    };
  };
  /** Delete the subscription. `DELETE /api/v1/webhook_subscriptions/{env}`, permission `write`. */
  deleteWebhookSubscription: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    result: {
      webhookSubscriptionId: string;
      deleted: true;
    };
  };
  /** Make a new signing secret; the one before signs too until the grace period is over. `POST /api/v1/webhook_subscriptions/{env}/rotate_secret`, permission `write`. */
  rotateWebhookSecret: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    body: RotateSecret;
    result: RotatedSecret;
  };
  /** Send one signed envelope of no Session (`ses_test`) now, and read how the receiver answered. `POST /api/v1/webhook_subscriptions/{env}/test`, permission `write`. */
  testWebhookSubscription: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    result: {
      attempt: WebhookAttempt;
    };
  };
  /** List what came to the test receiver (`signalbox:test-receiver`), newest first; the last 100 are kept. `GET /api/v1/webhook_subscriptions/{env}/received`, permission `read`. */
  listReceivedWebhooks: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: ReceivedWebhook[];
      page: PageInfo;
    };
  };
  /** Send again from the journal: all Sessions since a time, or one after a cursor; a few at a time. `POST /api/v1/webhook_subscriptions/{env}/recover`, permission `write`. */
  recoverDeliveries: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    body: RecoverDeliveries;
    result: {
      webhookSubscription: WebhookSubscription;
    };
  };
  /** List deliveries, newest first. `GET /api/v1/webhook_subscriptions/{env}/deliveries`, permission `read`. */
  listDeliveries: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      status?: 'pending' | 'succeeded' | 'exhausted' | 'cancelled' | undefined;
      sessionId?: string | undefined;
    };
    result: {
      data: WebhookDelivery[];
      page: PageInfo;
    };
  };
  /** Read a delivery with its attempts. `GET /api/v1/webhook_subscriptions/{env}/deliveries/{deliveryId}`, permission `read`. */
  getDelivery: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
      deliveryId: string;
    };
    result: {
      webhookDelivery: WebhookDeliveryWithAttempts;
    };
  };
  /** Send a delivery once more: the same id and bytes; one that waits for a retry is tried now. `POST /api/v1/webhook_subscriptions/{env}/deliveries/{deliveryId}/resend`, permission `write`. */
  resendDelivery: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
      deliveryId: string;
    };
    result: {
      webhookDelivery: WebhookDelivery;
    };
  };
  /** Read what goes on now, in a few numbers: of the organization, or of one Environment. `GET /api/v1/overview`, permission `read`. */
  getOverview: {
    query: {
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
    };
    result: {
      overview: Overview;
    };
  };
  /** Read what the organization used, in whole days of UTC. `GET /api/v1/usage`, permission `read`. */
  getUsage: {
    query: {
      /** At most 366 days before `to`; 30 days unless given. */
      from?: string | undefined;
      /** Now unless given. */
      to?: string | undefined;
      /** Default: `"day"`. */
      groupBy?: 'day' | 'agent' | 'environment' | 'model' | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
    };
    result: UsageReport;
  };
  /** List the people of the organization, newest first. `GET /api/v1/members`, permission `admin`. */
  listMembers: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: Member[];
      page: PageInfo;
    };
  };
  /** Change the role of a person; only an owner makes or changes owners. `PATCH /api/v1/members/{userId}`, permission `admin`. */
  updateMember: {
    params: {
      userId: string;
    };
    body: UpdateMember;
    result: {
      member: Member;
    };
  };
  /** Remove a person from the organization; who was in no other is forgotten. `DELETE /api/v1/members/{userId}`, permission `admin`. */
  removeMember: {
    params: {
      userId: string;
    };
    result: {
      userId: string;
      deleted: true;
    };
  };
  /** Make a link with which a person of this organization alone sets a new password; it is valid for 24 hours. `POST /api/v1/members/{userId}/password_reset`, permission `admin`. */
  resetPassword: {
    params: {
      userId: string;
    };
    result: PasswordReset;
  };
  /** List the invitations that are open, newest first. `GET /api/v1/invitations`, permission `admin`. */
  listInvitations: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: Invitation[];
      page: PageInfo;
    };
  };
  /** Invite a person: a link to hand over, valid once and for 7 days. `POST /api/v1/invitations`, permission `admin`. */
  createInvitation: {
    body: CreateInvitation;
    result: CreatedInvitation;
  };
  /** Withdraw an invitation. `DELETE /api/v1/invitations/{invitationId}`, permission `admin`. */
  deleteInvitation: {
    params: {
      invitationId: string;
    };
    result: {
      invitationId: string;
      deleted: true;
    };
  };
  /** Rename the organization. `PATCH /api/v1/organization`, permission `admin`. */
  updateOrganization: {
    body: UpdateOrganization;
    result: {
      organization: Organization;
    };
  };
  /** Read who changed what; with `wait`, as it happens. `GET /api/v1/events`, permission `read`. */
  listEvents: {
    query: {
      /** The most items of a page. Where they are long it has fewer: about 4 MiB. Default: `100`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      /** Newest or oldest first. Default: `"desc"`. */
      order?: 'desc' | 'asc' | undefined;
      /** Only records of this type, or of these, comma separated. A page by one filter takes the same time however many records there are. By several it takes longest if many records match each and none matches all: some 200 ms in a million records. */
      type?: string | undefined;
      actorId?: string | undefined;
      resourceId?: string | undefined;
      sessionId?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      since?: string | undefined;
      until?: string | undefined;
      /** Only records after this one of the organization. */
      afterSequence?: number | undefined;
      /** With `order=asc`: how many seconds to wait for a record where there is none yet. Default: `0`. */
      wait?: number | undefined;
    };
    result: {
      data: Event[];
      page: PageInfo;
    };
  };
  /** Read all of it as one file, oldest first, up to the newest record when it began. `GET /api/v1/events/export`, permission `read`. */
  exportEvents: {
    query: {
      /** `jsonl`: a record a line, as the list has them, to be verified; `csv`: for spreadsheets. Default: `"jsonl"`. */
      format?: 'jsonl' | 'csv' | undefined;
      /** Only records of this type, or of these, comma separated. A page by one filter takes the same time however many records there are. By several it takes longest if many records match each and none matches all: some 200 ms in a million records. */
      type?: string | undefined;
      actorId?: string | undefined;
      resourceId?: string | undefined;
      sessionId?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      since?: string | undefined;
      until?: string | undefined;
      /** Only records after this one of the organization. */
      afterSequence?: number | undefined;
    };
    result: Event;
  };
  /** Read a record. `GET /api/v1/events/{eventId}`, permission `read`. */
  getEvent: {
    params: {
      eventId: string;
    };
    result: {
      event: Event;
    };
  };
}

/** Method and path of every operation, below `/api/v1`. */
export const operations = {
  getMe: { method: 'GET', path: '/me' },
  createKey: { method: 'POST', path: '/api_keys' },
  listKeys: { method: 'GET', path: '/api_keys' },
  getKey: { method: 'GET', path: '/api_keys/{keyId}' },
  updateKey: { method: 'PATCH', path: '/api_keys/{keyId}' },
  rotateKey: { method: 'POST', path: '/api_keys/{keyId}/rotate' },
  deleteKey: { method: 'DELETE', path: '/api_keys/{keyId}' },
  createAgent: { method: 'POST', path: '/agents' },
  listAgents: { method: 'GET', path: '/agents' },
  getAgent: { method: 'GET', path: '/agents/{agentId}' },
  listAgentVersions: { method: 'GET', path: '/agents/{agentId}/versions' },
  updateAgent: { method: 'PATCH', path: '/agents/{agentId}' },
  archiveAgent: { method: 'DELETE', path: '/agents/{agentId}' },
  listEnvironments: { method: 'GET', path: '/environments' },
  createEnvironment: { method: 'POST', path: '/environments' },
  updateEnvironment: { method: 'PATCH', path: '/environments/{env}' },
  deleteEnvironment: { method: 'DELETE', path: '/environments/{env}' },
  listSecrets: { method: 'GET', path: '/environments/{env}/secrets' },
  setSecret: { method: 'PUT', path: '/environments/{env}/secrets/{name}' },
  deleteSecret: { method: 'DELETE', path: '/environments/{env}/secrets/{name}' },
  openSession: { method: 'POST', path: '/sessions' },
  listSessions: { method: 'GET', path: '/sessions' },
  getSession: { method: 'GET', path: '/sessions/{sessionId}' },
  updateSession: { method: 'PATCH', path: '/sessions/{sessionId}' },
  deleteSession: { method: 'DELETE', path: '/sessions/{sessionId}' },
  sendMessage: { method: 'POST', path: '/sessions/{sessionId}/messages' },
  listMessages: { method: 'GET', path: '/sessions/{sessionId}/messages' },
  listTurns: { method: 'GET', path: '/sessions/{sessionId}/turns' },
  sendToolResult: { method: 'POST', path: '/sessions/{sessionId}/tool_results' },
  interruptSession: { method: 'POST', path: '/sessions/{sessionId}/interrupt' },
  closeSession: { method: 'POST', path: '/sessions/{sessionId}/close' },
  cancelSession: { method: 'POST', path: '/sessions/{sessionId}/cancel' },
  listChunks: { method: 'GET', path: '/sessions/{sessionId}/chunks' },
  streamSession: { method: 'GET', path: '/sessions/{sessionId}/stream' },
  listApprovals: { method: 'GET', path: '/approvals' },
  getApproval: { method: 'GET', path: '/approvals/{operationId}' },
  resolveApproval: { method: 'POST', path: '/approvals/{operationId}/resolve' },
  claimWorkerTurn: { method: 'POST', path: '/worker_turns/claim' },
  heartbeatWorkerTurn: { method: 'POST', path: '/worker_turns/{workerTurnId}/heartbeat' },
  appendToWorkerTurn: { method: 'POST', path: '/worker_turns/{workerTurnId}/append' },
  completeWorkerTurn: { method: 'POST', path: '/worker_turns/{workerTurnId}/complete' },
  releaseWorkerTurn: { method: 'POST', path: '/worker_turns/{workerTurnId}/release' },
  createSchedule: { method: 'POST', path: '/schedules' },
  listSchedules: { method: 'GET', path: '/schedules' },
  getSchedule: { method: 'GET', path: '/schedules/{scheduleId}' },
  updateSchedule: { method: 'PATCH', path: '/schedules/{scheduleId}' },
  deleteSchedule: { method: 'DELETE', path: '/schedules/{scheduleId}' },
  listScheduleRuns: { method: 'GET', path: '/schedules/{scheduleId}/runs' },
  listWebhookSubscriptions: { method: 'GET', path: '/webhook_subscriptions' },
  createWebhookSubscription: { method: 'POST', path: '/webhook_subscriptions' },
  getWebhookSubscription: { method: 'GET', path: '/webhook_subscriptions/{env}' },
  updateWebhookSubscription: { method: 'PATCH', path: '/webhook_subscriptions/{env}' },
  deleteWebhookSubscription: { method: 'DELETE', path: '/webhook_subscriptions/{env}' },
  rotateWebhookSecret: { method: 'POST', path: '/webhook_subscriptions/{env}/rotate_secret' },
  testWebhookSubscription: { method: 'POST', path: '/webhook_subscriptions/{env}/test' },
  listReceivedWebhooks: { method: 'GET', path: '/webhook_subscriptions/{env}/received' },
  recoverDeliveries: { method: 'POST', path: '/webhook_subscriptions/{env}/recover' },
  listDeliveries: { method: 'GET', path: '/webhook_subscriptions/{env}/deliveries' },
  getDelivery: { method: 'GET', path: '/webhook_subscriptions/{env}/deliveries/{deliveryId}' },
  resendDelivery: { method: 'POST', path: '/webhook_subscriptions/{env}/deliveries/{deliveryId}/resend' },
  getOverview: { method: 'GET', path: '/overview' },
  getUsage: { method: 'GET', path: '/usage' },
  listMembers: { method: 'GET', path: '/members' },
  updateMember: { method: 'PATCH', path: '/members/{userId}' },
  removeMember: { method: 'DELETE', path: '/members/{userId}' },
  resetPassword: { method: 'POST', path: '/members/{userId}/password_reset' },
  listInvitations: { method: 'GET', path: '/invitations' },
  createInvitation: { method: 'POST', path: '/invitations' },
  deleteInvitation: { method: 'DELETE', path: '/invitations/{invitationId}' },
  updateOrganization: { method: 'PATCH', path: '/organization' },
  listEvents: { method: 'GET', path: '/events' },
  exportEvents: { method: 'GET', path: '/events/export' },
  getEvent: { method: 'GET', path: '/events/{eventId}' },
} as const satisfies Record<keyof Operations, { method: string; path: string }>;

/** Headers of a webhook delivery (source section 6.4, api.md section 7). */
export const deliveryHeaders = {
  "timestamp": "x-service-timestamp",
  "signature": "x-service-signature",
  "deliveryId": "x-service-delivery-id",
  "attempt": "x-service-attempt",
  "secretVersion": "x-service-secret-version",
  "previousCursor": "x-service-previous-cursor"
} as const;

/** A receiver refuses a delivery whose timestamp is further than this from its own clock (source section 6.4). */
export const replayWindowSeconds = 300;
