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
  };
  outputSchema: null;
  metadata: Metadata;
  createdAt: string;
  updatedAt: string;
  archivedAt: string | null;
}

export interface ApiKey {
  keyId: string;
  name: string;
  permission: Permission;
  /** From this instant on the key is refused; null: never. */
  expiresAt: string | null;
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
  editedInput: null;
  status: ApprovalStatus;
  reason: string | null;
  resolvedBy: ResolvedBy | null;
  requestedAt: string;
  resolvedAt: string | null;
  expiresAt: string | null;
}

/** Whether a person decides before a call runs. Default: `always` for effectful tools, `never` for others. */
export type ApprovalPolicy = 'always' | 'never';

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
  decision: Decision;
  reason?: string;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';

export interface Budget {
  /** Input and output tokens together. */
  maxTokens?: number | undefined;
  /** Model calls. */
  maxSteps?: number | undefined;
  maxCostUsd?: number | undefined;
}

export type Chunk = MessageChunk | SessionStatusChunk | ToolCallChunk | ToolResultChunk | ApprovalRequestedChunk | ApprovalResolvedChunk | MessageResetChunk | TurnCompletedChunk;

export type ChunkType = 'message.chunk' | 'session.status' | 'tool.call' | 'tool.result' | 'approval.requested' | 'approval.resolved' | 'message.reset' | 'turn.completed';

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

export type Content = string | TextPart[];

export interface CreateAgent {
  name: string;
  model: Model | string;
  description?: string | undefined;
  instructions?: string | undefined;
  tools?: Tool[] | undefined;
  limits?: Limits | undefined;
  metadata?: Metadata | undefined;
}

export interface CreateEnvironment {
  /** The name of an Environment, such as `production`. */
  name: string;
}

export interface CreateKey {
  name: string;
  permission: Permission;
  /** In the future; null or absent: never expires. */
  expiresAt?: string | null | undefined;
  metadata?: Metadata | undefined;
}

export interface CreateWebhookSubscription {
  /** The name of an Environment, such as `production`. */
  environment: string;
  /** `https`, without user info, at a public address; `http` and private addresses where the operator allows them. */
  url: string;
  /** What is delivered. `message.reset` comes wherever `message.chunk` does. */
  chunkTypes?: ChunkType[] | undefined;
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

export type ErrorCode = 'invalid_request' | 'invalid_cursor' | 'missing_token' | 'malformed_token' | 'invalid_token' | 'token_expired' | 'token_rotated' | 'token_revoked' | 'insufficient_permission' | 'not_found' | 'conflict' | 'subscription_exists' | 'environment_exists' | 'idempotency_conflict' | 'idempotency_in_progress' | 'session_ended' | 'session_busy' | 'approval_already_resolved' | 'agent_archived' | 'payload_too_large' | 'unsupported_media_type' | 'url_not_allowed' | 'budget_invalid' | 'rate_limited' | 'internal_error' | 'unavailable';

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
  /** `{ field: [before, after] }`. Never holds a secret. */
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

export type EventType = 'api_key.created' | 'api_key.updated' | 'api_key.rotated' | 'api_key.deleted' | 'agent.created' | 'agent.updated' | 'agent.archived' | 'environment.created' | 'environment.deleted' | 'environment_secret.set' | 'environment_secret.deleted' | 'session.created' | 'session.updated' | 'session.deleted' | 'session.waiting' | 'session.idle' | 'session.completed' | 'session.failed' | 'session.cancelled' | 'approval.requested' | 'approval.resolved' | 'webhook_subscription.created' | 'webhook_subscription.updated' | 'webhook_subscription.deleted' | 'webhook_subscription.secret_rotated' | 'webhook_subscription.secret_confirmed' | 'webhook_subscription.disabled' | 'webhook_subscription.enabled' | 'webhook_delivery.exhausted' | 'access.denied';

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

/** A JSON Schema (draft 2020-12) of an object. */
export type JsonSchema = Record<string, unknown>;

export interface Limits {
  /** Default: `20`. */
  maxStepsPerTurn?: number | undefined;
  /** For one model call; null: the model decides. */
  maxOutputTokens?: number | null | undefined;
}

export interface Me {
  organization: {
    organizationId: string;
    name: string;
  };
  apiKey: ApiKey | null;
  /** The person, for calls of the console. */
  user: null;
  permission: Permission;
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
  provider: 'scripted' | 'openai-compatible';
  model: string;
  /** Where an `openai-compatible` server answers, up to and with `/v1`. */
  baseUrl?: string | undefined;
  /** The Environment's secret that holds the provider's key. */
  apiKeySecret?: string | undefined;
  settings?: ModelSettings | undefined;
}

export interface ModelSettings {
  /** For `scripted`: one step a model call, the last one repeated. */
  script?: ScriptStep[] | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  seed?: number | undefined;
  stopSequences?: string[] | undefined;
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

export interface PageInfo {
  /** Whether more can be read after `nextCursor` now. */
  hasMore: boolean;
  /** Where to go on, also when `hasMore` is false; `""` only where nothing was ever listed. */
  nextCursor: string;
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

export interface ResolveApproval {
  decision: 'approved' | 'denied';
  /** A denial reaches the model with it. */
  reason?: string | undefined;
  onBehalfOf?: string | undefined;
}

export interface ResolvedBy {
  type: 'api_key' | 'user' | 'system';
  id: string | null;
  name: string;
  /** The integrator's own user, as the caller named it. */
  onBehalfOf: string | null;
}

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

export interface ScriptStep {
  /** Streamed word by word. `{{input}}` is the last user message, `{{lastToolResult}}` the last tool result. */
  text?: string | undefined;
  toolCalls?: ScriptToolCall[] | undefined;
  /** Wait before each word. */
  tokenDelayMs?: number | undefined;
  failWith?: 'timeout' | 'rate_limited' | 'broken_stream' | 'refusal' | undefined;
}

export interface ScriptToolCall {
  name: string;
  input?: unknown;
}

export interface SendMessage {
  content: Content;
  /** While a turn is under way: `queue` a turn of its own after it, or `reject` with 409 `session_busy`. Default: `"queue"`. */
  onBusy?: 'queue' | 'reject' | undefined;
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

export interface SetSecret {
  value: string;
  allowedHosts: string[];
}

export type StopReason = 'endTurn' | 'maxSteps' | 'budgetReached' | 'refusal' | 'interrupted' | 'timedOut' | 'error';

export interface TextPart {
  type: 'text';
  text: string;
}

export type Tool = HttpTool | ClientTool;

export interface ToolCallChunk {
  type: 'tool.call';
  tool: string;
  toolCallId: string;
  input: unknown;
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
  output?: unknown;
  error?: string;
  /** true: the service stopped while the call ran; it may or may not have had its effect. */
  outcomeUnknown?: boolean;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ToolResultPart {
  type: 'tool_result';
  toolCallId: string;
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

export interface UpdateAgent {
  name?: string | undefined;
  model?: Model | string | undefined;
  description?: string | undefined;
  instructions?: string | undefined;
  tools?: Tool[] | undefined;
  limits?: Limits | undefined;
  metadata?: Metadata | undefined;
}

export interface UpdateKey {
  name?: string | undefined;
  permission?: Permission | undefined;
  metadata?: Metadata | undefined;
}

export interface UpdateSession {
  metadata?: Metadata | undefined;
}

export interface UpdateWebhookSubscription {
  /** `https`, without user info, at a public address; `http` and private addresses where the operator allows them. */
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
  nextAttemptAt: string | null;
  finishedAt: string | null;
  attempts: WebhookAttempt[];
}

export interface WebhookSubscription {
  webhookSubscriptionId: string;
  /** The name of an Environment, such as `production`. */
  environment: string;
  url: string;
  /** What is delivered. `message.reset` comes wherever `message.chunk` does. */
  chunkTypes: ChunkType[];
  status: WebhookSubscriptionStatus;
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
}

export type WebhookSubscriptionStatus = 'enabled' | 'paused' | 'disabled';

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
      /** Default: `20`. */
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
  /** Change name, permission or metadata; the secret stays. `PATCH /api/v1/api_keys/{keyId}`, permission `admin`. */
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
      /** Default: `20`. */
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
      /** Default: `20`. */
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
      /** Default: `20`. */
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
  /** Delete an Environment without open Sessions and subscription. `DELETE /api/v1/environments/{env}`, permission `write`. */
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
      /** Default: `20`. */
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
      /** Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      status?: 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined;
      agentId?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      /** `metadata[key]=value`: Sessions whose metadata has this value, compared as text. */
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
  /** Delete an ended Session and all of its data, for good. `DELETE /api/v1/sessions/{sessionId}`, permission `write`. */
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
  /** Read the transcript, oldest first. `GET /api/v1/sessions/{sessionId}/messages`, permission `read`. */
  listMessages: {
    params: {
      sessionId: string;
    };
    query: {
      /** Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
    };
    result: {
      data: Message[];
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
  /** Read the journal after a cursor, oldest first; `limit` counts chunks. `GET /api/v1/sessions/{sessionId}/chunks`, permission `read`. */
  listChunks: {
    params: {
      sessionId: string;
    };
    query: {
      /** Default: `100`. */
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
  /** List approvals over all Sessions, oldest first. `GET /api/v1/approvals`, permission `read`. */
  listApprovals: {
    query: {
      /** Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
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
  /** List the subscriptions across Environments, newest first. `GET /api/v1/webhook_subscriptions`, permission `read`. */
  listWebhookSubscriptions: {
    query: {
      /** Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
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
  /** List deliveries, newest first. `GET /api/v1/webhook_subscriptions/{env}/deliveries`, permission `read`. */
  listDeliveries: {
    params: {
      /** The name of an Environment, such as `production`. */
      env: string;
    };
    query: {
      /** Default: `20`. */
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
  /** Read who changed what. `GET /api/v1/events`, permission `read`. */
  listEvents: {
    query: {
      /** Default: `100`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the page before. */
      cursor?: string | undefined;
      /** Newest or oldest first. Default: `"desc"`. */
      order?: 'desc' | 'asc' | undefined;
      type?: EventType | undefined;
      actorId?: string | undefined;
      resourceId?: string | undefined;
      sessionId?: string | undefined;
      /** The name of an Environment, such as `production`. */
      environment?: string | undefined;
      since?: string | undefined;
      until?: string | undefined;
    };
    result: {
      data: Event[];
      page: PageInfo;
    };
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
  sendToolResult: { method: 'POST', path: '/sessions/{sessionId}/tool_results' },
  closeSession: { method: 'POST', path: '/sessions/{sessionId}/close' },
  cancelSession: { method: 'POST', path: '/sessions/{sessionId}/cancel' },
  listChunks: { method: 'GET', path: '/sessions/{sessionId}/chunks' },
  streamSession: { method: 'GET', path: '/sessions/{sessionId}/stream' },
  listApprovals: { method: 'GET', path: '/approvals' },
  getApproval: { method: 'GET', path: '/approvals/{operationId}' },
  resolveApproval: { method: 'POST', path: '/approvals/{operationId}/resolve' },
  listWebhookSubscriptions: { method: 'GET', path: '/webhook_subscriptions' },
  createWebhookSubscription: { method: 'POST', path: '/webhook_subscriptions' },
  getWebhookSubscription: { method: 'GET', path: '/webhook_subscriptions/{env}' },
  updateWebhookSubscription: { method: 'PATCH', path: '/webhook_subscriptions/{env}' },
  deleteWebhookSubscription: { method: 'DELETE', path: '/webhook_subscriptions/{env}' },
  rotateWebhookSecret: { method: 'POST', path: '/webhook_subscriptions/{env}/rotate_secret' },
  listDeliveries: { method: 'GET', path: '/webhook_subscriptions/{env}/deliveries' },
  getDelivery: { method: 'GET', path: '/webhook_subscriptions/{env}/deliveries/{deliveryId}' },
  listEvents: { method: 'GET', path: '/events' },
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
