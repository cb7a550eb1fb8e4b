// Generated from the contract by scripts/generate.ts; npm test compares.

export interface Actor {
  type: 'api_key' | 'user' | 'agent' | 'end_user' | 'system';
  id: string | null;
  name: string;
}

export interface Agent {
  agentId: string;
  /** Every change creates a new, immutable version. */
  version: number;
  name: string;
  description: string;
  model: Model;
  instructions: string;
  tools: Tool[];
  limits: {
    maxStepsPerTurn: number;
    maxOutputTokens: number | null;
    continueWhenCut: number;
    turnTimeoutSeconds: number;
    modelOutageSeconds: number;
    approvalTimeoutSeconds: number | null;
    onApprovalTimeout: 'deny' | 'cancel';
    compactAtTokens: number | null;
  };
  outputSchema: JsonSchema | null;
  showReasoning: boolean;
  showToolInput: boolean;
  metadata: Metadata;
  createdAt: string;
  updatedAt: string;
  archivedAt: string | null;
}

export interface AgentTool {
  type: 'agent';
  /** The name by which the model calls the tool; unique in the agent. */
  name: string;
  description: string;
  agentId: string;
  /** Default: `never`; the child session requests approvals itself. */
  approval?: ToolApproval | undefined;
}

export interface Analytics {
  /** The beginning of the first point. */
  from: string;
  /** The end of the last point; exclusive. */
  to: string;
  step: 'minute' | 'hour' | 'day';
  total: AnalyticsSum;
  /** Sums of the period of the same length before it. */
  previous: AnalyticsSum;
  /** Every minute, hour or day in order, also those without anything. */
  points: AnalyticsPoint[];
  /** With `groupBy`: those with the most failed turns first, then those with the most turns; at most 200. */
  groups: AnalyticsGroup[];
  /** The day of the built-in prices, which apply where the operator has set none; null if they are off. */
  pricesDate: string | null;
}

export interface AnalyticsGroup {
  /** An `agentId`, the name of an environment, or `provider/model`; `""` for what is of no agent or model. */
  group: string;
  sessions: {
    opened: number;
    completed: number;
    failed: number;
    cancelled: number;
  };
  turns: {
    /** Turns that ended, failed ones included. */
    ended: number;
    failed: number;
  };
  /** How long turns worked, without the time that they waited for approvals and results. Percentiles are right to within a fifth. */
  turnDuration: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  /** Time from a model call to the first piece of its response. Percentiles are right to within a fifth. */
  firstToken: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  modelCalls: {
    succeeded: number;
    /** Attempts that failed, also if a retry or a fallback succeeded. */
    failed: number;
  };
  toolCalls: {
    /** Calls that the service ran itself, failed ones included. */
    ended: number;
    failed: number;
  };
  webhooks: {
    /** Requests to your receivers, failed ones included. */
    attempts: number;
    failed: number;
  };
  /** How long receivers took to respond. Percentiles are right to within a fifth. */
  webhookDuration: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  /** Input and output tokens. */
  tokens: number;
  /** Searches of the web that providers ran themselves, as they report them. */
  webSearches: number;
  /** Cost of the model calls that have a price. */
  costUsd: number;
  /** Why turns failed, the most frequent error first; at most 20. */
  failures: {
    /** The error of the turns, such as `model_rate_limited`. */
    code: string;
    count: number;
    /** The last session with the error; it may be deleted. */
    sessionId: string | null;
  }[];
}

export interface AnalyticsPoint {
  /** The beginning of the minute, hour or UTC day. */
  at: string;
  sessions: {
    opened: number;
    completed: number;
    failed: number;
    cancelled: number;
  };
  turns: {
    /** Turns that ended, failed ones included. */
    ended: number;
    failed: number;
  };
  /** How long turns worked, without the time that they waited for approvals and results. Percentiles are right to within a fifth. */
  turnDuration: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  /** Time from a model call to the first piece of its response. Percentiles are right to within a fifth. */
  firstToken: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  modelCalls: {
    succeeded: number;
    /** Attempts that failed, also if a retry or a fallback succeeded. */
    failed: number;
  };
  toolCalls: {
    /** Calls that the service ran itself, failed ones included. */
    ended: number;
    failed: number;
  };
  webhooks: {
    /** Requests to your receivers, failed ones included. */
    attempts: number;
    failed: number;
  };
  /** How long receivers took to respond. Percentiles are right to within a fifth. */
  webhookDuration: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  /** Input and output tokens. */
  tokens: number;
  /** Searches of the web that providers ran themselves, as they report them. */
  webSearches: number;
  /** Cost of the model calls that have a price. */
  costUsd: number;
}

/** Sums of the whole period. */
export interface AnalyticsSum {
  sessions: {
    opened: number;
    completed: number;
    failed: number;
    cancelled: number;
  };
  turns: {
    /** Turns that ended, failed ones included. */
    ended: number;
    failed: number;
  };
  /** How long turns worked, without the time that they waited for approvals and results. Percentiles are right to within a fifth. */
  turnDuration: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  /** Time from a model call to the first piece of its response. Percentiles are right to within a fifth. */
  firstToken: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  modelCalls: {
    succeeded: number;
    /** Attempts that failed, also if a retry or a fallback succeeded. */
    failed: number;
  };
  toolCalls: {
    /** Calls that the service ran itself, failed ones included. */
    ended: number;
    failed: number;
  };
  webhooks: {
    /** Requests to your receivers, failed ones included. */
    attempts: number;
    failed: number;
  };
  /** How long receivers took to respond. Percentiles are right to within a fifth. */
  webhookDuration: {
    /** How many were measured. */
    count: number;
    /** The median; null if none was measured. */
    p50Ms: number | null;
    /** The 95th percentile; null if none was measured. */
    p95Ms: number | null;
  };
  /** Input and output tokens. */
  tokens: number;
  /** Searches of the web that providers ran themselves, as they report them. */
  webSearches: number;
  /** Cost of the model calls that have a price. */
  costUsd: number;
}

export interface ApiKey {
  keyId: string;
  name: string;
  /** Null if the key was given scopes. */
  permission: Permission | null;
  /** Scopes of the key: the scopes that it was given, or the scopes of its permission. */
  scopes: Scope[];
  /** When the key expires; null: never. */
  expiresAt: string | null;
  /** The only addresses that the key can be used from, as addresses and CIDRs; null: any. */
  allowedIps: string[] | null;
  /** The only environments that the key can use; null: all. A restricted key can read agents, but can't change anything that environments share. */
  environments: string[] | null;
  /** The only agents that the key can use, with their sessions, approvals, schedules, worker turns, files and usage; null: all. A child session belongs to the agent that runs it. What does not belong to an agent is closed to a restricted key. */
  agents: string[] | null;
  /** How many requests the key can make in a minute, on all nodes together; null: no limit of its own. */
  requestsPerMinute: number | null;
  /** What the sessions of the key can cost in a UTC day, in US dollars; null: no limit. Then their turns end with `budgetReached`, and the key starts no more. Needs a configured price for the models. */
  maxCostUsdPerDay: number | null;
  /** What the sessions of the key have cost in this UTC day. `Organization.pricesDate` is the day of the built-in prices. */
  costUsdToday: number;
  metadata: Metadata;
  /** The beginning and the last four characters of the secret. */
  secretPreview: string;
  /** The secret before the last rotation, while it still works; null if there is none. */
  expiringSecret: ExpiringSecret | null;
  /** To the minute; null for an unused key. */
  lastUsedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface ApiKeyWithSecret {
  keyId: string;
  name: string;
  /** Null if the key was given scopes. */
  permission: Permission | null;
  /** Scopes of the key: the scopes that it was given, or the scopes of its permission. */
  scopes: Scope[];
  /** When the key expires; null: never. */
  expiresAt: string | null;
  /** The only addresses that the key can be used from, as addresses and CIDRs; null: any. */
  allowedIps: string[] | null;
  /** The only environments that the key can use; null: all. A restricted key can read agents, but can't change anything that environments share. */
  environments: string[] | null;
  /** The only agents that the key can use, with their sessions, approvals, schedules, worker turns, files and usage; null: all. A child session belongs to the agent that runs it. What does not belong to an agent is closed to a restricted key. */
  agents: string[] | null;
  /** How many requests the key can make in a minute, on all nodes together; null: no limit of its own. */
  requestsPerMinute: number | null;
  /** What the sessions of the key can cost in a UTC day, in US dollars; null: no limit. Then their turns end with `budgetReached`, and the key starts no more. Needs a configured price for the models. */
  maxCostUsdPerDay: number | null;
  /** What the sessions of the key have cost in this UTC day. `Organization.pricesDate` is the day of the built-in prices. */
  costUsdToday: number;
  metadata: Metadata;
  /** The beginning and the last four characters of the secret. */
  secretPreview: string;
  /** The secret before the last rotation, while it still works; null if there is none. */
  expiringSecret: ExpiringSecret | null;
  /** To the minute; null for an unused key. */
  lastUsedAt: string | null;
  createdAt: string;
  updatedAt: string;
  /** The whole secret, shown only once. Absent only from an idempotent replay that was requested with another credential. */
  secret?: string;
}

export interface AppendToWorkerTurn {
  /** Pieces of the response in their order: text as strings, reasoning and the input of tool calls. */
  deltas: WorkerDelta[];
  /** The `cursor` of the worker turn or of the last append: with it, a repeated append of the same text is written only once. Default: the end of the journal. */
  after?: string | undefined;
}

export interface Approval {
  /** Stored before the approval is announced; never changes. */
  operationId: string;
  /** The call that waits, as chunks and messages name it. */
  toolCallId: string;
  sessionId: string;
  agentId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  /** The tool that would run. */
  name: string;
  input: unknown;
  /** Whether approving it also approves later calls of this tool in this session: the tool's policy is `once`. */
  allowsSession: boolean;
  /** The input with which the approver replaced it; null if it was not edited. */
  editedInput: unknown;
  status: ApprovalStatus;
  reason: string | null;
  /** As the agent said when the call was requested; later versions do not change it. null: the default. */
  by: Approvers | null;
  /** In their order. A repeated approval replaces the same approver's earlier one. */
  decisions: ApprovalDecision[];
  progress: ApprovalProgress;
  /** If it is pending: the error that the caller of this request would get for approving it. null: the caller may decide. With `already_decided_by_you` it can still deny. */
  refusal: ApprovalRefusal | null;
  resolvedBy: ResolvedBy | null;
  requestedAt: string;
  resolvedAt: string | null;
  expiresAt: string | null;
  /** With `include=context`: the last 3 messages before the call that have text, oldest first. The message with the call itself is one of them if it has text. */
  context?: ContextMessage[];
}

export interface ApprovalDecidedChunk {
  type: 'approval.decided';
  operationId: string;
  toolCallId: string;
  decision: 'approved';
  progress: ApprovalProgress;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ApprovalDecision {
  decision: 'approved' | 'denied';
  actor: ResolvedBy;
  at: string;
  reason: string | null;
  /** The input that was approved. Absent: as the model requested it. */
  input?: unknown;
  scope: 'once' | 'session';
}

export interface ApprovalOutcome {
  operationId: string;
  /** Its status now: `pending` if more approvers are needed. null: it was refused. */
  status: 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled' | null;
  /** null: it was refused. */
  progress: ApprovalProgress | null;
  /** The error that deciding this approval alone would have had; null: it was decided. */
  error: {
    status: number;
    code: string;
    detail: string;
  } | null;
}

/** `always`, `never`, `once` (once per session and tool), or `{ "when": <JSON Schema> }`: if the input matches. What `when` names must be in the schema of the input. Default: `always` for effectful tools, `never` for others. */
export type ApprovalPolicy = 'always' | 'never' | 'once' | ApprovalWhen;

export interface ApprovalProgress {
  /** How many have approved. If they approved different inputs: the largest number that approved the same. */
  approved: number;
  required: number;
}

export interface ApprovalRefusal {
  code: string;
  message: string;
}

export interface ApprovalRequestedChunk {
  type: 'approval.requested';
  operationId: string;
  /** The tool that would run. */
  name: string;
  input: unknown;
  toolCallId: string;
  expiresAt: string | null;
  /** Who may decide, if the tool's `approval` says it. */
  by?: Approvers;
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

export interface ApprovalRule {
  /** Which calls need an approval. */
  policy: 'always' | 'once' | ApprovalWhen;
  by: Approvers;
}

export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';

export interface ApprovalWhen {
  when: JsonSchema;
}

/** Who may decide. Each of `people`, `roles`, `keys` and `endUser` admits more; with none of them, all people and keys that can decide approvals may. */
export interface Approvers {
  /** People whose role can decide approvals, unless `roles` names some of them. */
  people?: true | undefined;
  /** Only people with one of these roles. */
  roles?: ('approver' | 'member' | 'admin' | 'owner')[] | undefined;
  /** API keys. */
  keys?: true | undefined;
  /** The session's end user, with a session token that can decide. */
  endUser?: true | undefined;
  /** Not the keys and people that opened the session or sent it a message, and no keys that they created. Not together with `endUser`. */
  notRequester?: true | undefined;
  /** How many different approvers have to approve the same input. One denial is final. Default: `1`. */
  count?: number | undefined;
}

export interface AskedToolCall {
  tool: string;
  input: unknown;
}

export interface Budget {
  /** Input and output tokens together. */
  maxTokens?: number | undefined;
  /** Model calls; never exceeded. */
  maxSteps?: number | undefined;
  /** Needs a price for the model (otherwise 422 `budget_invalid`). */
  maxCostUsd?: number | undefined;
}

export interface CallOutcome {
  toolCallId: string;
  /** The index of the call in the `toolCalls` of the step's response, from 0. */
  index: number;
  tool: string;
  /** `denied`: it was denied. `unknown`: it was interrupted while it ran; it may have taken effect. */
  status: 'succeeded' | 'failed' | 'denied' | 'cancelled' | 'unknown';
  output?: unknown;
  /** The error that the model sees; for a denial, including its reason. */
  error?: string;
}

export interface CanDecide {
  /** The only agents whose approvals they can decide; null: all. A call in a child session belongs to the agent that runs it. */
  agents: string[] | null;
  /** The only environments whose approvals they can decide; null: all. */
  environments: string[] | null;
}

/** The sessions that match all given filters. At least one filter is needed. */
export interface ChangeSessions {
  /** Only these sessions. */
  sessionIds?: string[] | undefined;
  /** Only sessions with all of these words in their messages, tool inputs, end user or metadata, in any order, case and with or without accents; the last word may be the beginning of one. Or the beginning of a session id. The words of a message are found some seconds after it was written. */
  q?: string | undefined;
  status?: 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined;
  /** `true`: only sessions whose last turn failed, whether they have ended or not. */
  hasError?: boolean | undefined;
  agentId?: string | undefined;
  /** The name of an environment, such as `production`. */
  environment?: string | undefined;
  /** true: only sessions that run a draft; false: only others. */
  draft?: boolean | undefined;
  /** Only child sessions of this session. */
  parentSessionId?: string | undefined;
  /** Only forks of this session, which may be deleted. */
  forkedFromSessionId?: string | undefined;
  /** Only sessions for this end user, including child sessions and forks. */
  endUserId?: string | undefined;
  /** Only sessions created at this time or later. */
  since?: string | undefined;
  /** Only sessions created before this time. */
  until?: string | undefined;
  /** `metadata[key]=value`: sessions whose metadata has this value, compared as text. If you give several pairs, put the one that the fewest sessions have first. A page takes longest if many sessions match each of several filters and hardly any matches all. */
  metadata?: Record<string, string> | undefined;
  /** How many open sessions it changes at most. Without effect if you give `sessionIds`. Default: `100`. */
  limit?: number | undefined;
  /** The `page.nextCursor` of the previous request. */
  cursor?: string | undefined;
}

export interface ChangedSession {
  sessionId: string;
  /** Afterwards; null if the session was not found. */
  status: SessionStatus | null;
  /** Why the session was not changed. Null if it was, or if it had been before. */
  error: {
    code: string;
    message: string;
  } | null;
}

export type Chunk = StepStartedChunk | MessageStartedChunk | MessageChunk | ReasoningChunk | ToolInputChunk | SessionStatusChunk | ToolCallChunk | ToolResultChunk | FileCreatedChunk | ApprovalRequestedChunk | ApprovalDecidedChunk | ApprovalResolvedChunk | MessageResetChunk | TurnCompletedChunk | ContextCompactedChunk;

export type ChunkType = 'step.started' | 'message.started' | 'message.chunk' | 'reasoning.chunk' | 'tool.input.chunk' | 'session.status' | 'tool.call' | 'tool.result' | 'file.created' | 'approval.requested' | 'approval.decided' | 'approval.resolved' | 'message.reset' | 'turn.completed' | 'context.compacted';

export interface ClaimWorkerTurn {
  queue: string;
  /** Only turns of sessions in this environment. */
  environment?: string | undefined;
  /** Only the next step of this session; 409 `turn_lost` if there can't be one. */
  sessionId?: string | undefined;
  /** With `sessionId`: only this turn. */
  turn?: number | undefined;
  /** How long to wait for a turn. Default: `20`. */
  waitSeconds?: number | undefined;
}

export interface ClientTool {
  type: 'client';
  /** The name by which the model calls the tool; unique in the agent. */
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** Whether a call has an effect outside of the service. Default: true for `http` tools whose method is not GET, otherwise false. */
  effectful?: boolean | undefined;
  approval?: ToolApproval | undefined;
}

export interface Compaction {
  /** The turn of the last message that the summary replaces. */
  untilTurn: number;
  tokensBefore: number;
  tokensAfter: number;
  summary: string;
}

export interface CompleteWorkerTurn {
  /** Run in parallel. None: the turn ends. */
  toolCalls?: AskedToolCall[] | undefined;
  /** For a worker turn with `pendingCalls`: the result of each. */
  toolResults?: ToolResult[] | undefined;
  /** What your model's provider ran itself for this response, such as web searches. They are shown with their results and are not run. */
  providerCalls?: RanToolCall[] | undefined;
  /** What the text of this response cites. */
  sources?: WorkerSource[] | undefined;
  usage?: WorkerUsage | undefined;
  /** Why the turn ends; only without `toolCalls`. Default: `"endTurn"`. */
  stopReason?: 'endTurn' | 'maxOutputTokens' | 'refusal' | undefined;
  error?: WorkerTurnError | undefined;
}

export type Content = string | ContentPart[];

export type ContentPart = TextInput | FileInput;

export interface ContextCompactedChunk {
  type: 'context.compacted';
  operationId: string;
  /** The turn of the last message that the summary replaces: this turn, if its own first steps are in it. */
  untilTurn: number;
  /** Estimated tokens that the next model call would have read. */
  tokensBefore: number;
  /** Estimated tokens that it reads now. */
  tokensAfter: number;
  summary: string;
  /** `provider/model` that wrote the summary; null if no model did, and it only says what is left out. */
  model: string | null;
  usage: ModelCallUsage | null;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ContextMessage {
  role: 'user' | 'assistant';
  /** Up to 500 characters of its text. */
  text: string;
  /** Whether the message has more text. */
  isCut: boolean;
  createdAt: string;
}

/** As for creating an agent. It is checked in the same way, and does not become a version. */
export interface CreateAgent {
  name: string;
  model: Model | `scripted/${string}` | `openai/${string}` | `anthropic/${string}` | `google/${string}` | `azure/${string}` | `vertex/${string}` | `bedrock/${string}` | `openai-compatible/${string}` | `worker/${string}`;
  description?: string | undefined;
  instructions?: string | undefined;
  tools?: Tool[] | undefined;
  limits?: Limits | undefined;
  /** Schema of the final response of a turn, as JSON; it appears as `output` in `turn.completed`. */
  outputSchema?: JsonSchema | null | undefined;
  /** Show the model's reasoning as `reasoning.chunk`s, if it sends any. It can contain what the instructions say. Default: `false`. */
  showReasoning?: boolean | undefined;
  /** Show the input of tool calls while the model writes it, as `tool.input.chunk`s. Default: `false`. */
  showToolInput?: boolean | undefined;
  metadata?: Metadata | undefined;
}

export interface CreateDestination {
  name: string;
  type: 'webhook';
  /** Which records are sent: types such as `session.failed`, groups such as `approval.*`, or `*` for all. A type that does not exist is refused, and so is a group without types. Records about the destination itself are never sent to it. */
  eventTypes: string[];
  /** The name of an environment, such as `production`. */
  environment?: string | undefined;
  /** Only records about these agents, their sessions, approvals and schedules. */
  agentIds?: string[] | undefined;
  /** `https`, without user info, at a public address; `http` and private addresses if the operator allows them. */
  url: string;
  /** Headers of your own, such as `Authorization` for a receiver that wants a key. They are encrypted and never returned. They replace all earlier ones, and are deleted if the URL gets another scheme, host or port. `X-Service-*`, `Webhook-*`, `Content-*`, `Host`, `User-Agent` and headers of the connection are refused. */
  headers?: Record<string, string> | undefined;
}

export interface CreateEndUserToken {
  agentId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  endUser: EndUser;
  scopes: ('read' | 'send' | 'decide' | 'open')[];
  /** How long the token is valid. The page that uses it can get a new one at any time. Default: `3600`. */
  expiresInSeconds?: number | undefined;
}

export interface CreateEnvironment {
  /** The name of an environment, such as `production`. */
  name: string;
  /** How many days sessions are kept after they end, with their transcript, journal and deliveries. A shorter limit of the operator takes precedence; null: the limit of the operator. */
  keepSessionsDays?: number | null | undefined;
  /** Replaces the limits of the environment for its models. Calls beyond a limit wait in order. A new limit applies to the calls that wait already. If a limit is removed, the calls that wait for it are made at once. */
  modelLimits?: SetModelLimit[] | undefined;
}

export interface CreateInvitation {
  role: Role;
  /** null: all that the role lets them decide. */
  canDecide?: SetCanDecide | null | undefined;
  email?: string | undefined;
  name?: string | undefined;
}

export type CreateKey = {
  name: string;
  /** In the future; null or absent: never expires. */
  expiresAt?: string | null | undefined;
  /** The only addresses that the key can be used from, as addresses and CIDRs; null: any. */
  allowedIps?: string[] | null | undefined;
  /** The only environments that the key can use; null: all. A restricted key can read agents, but can't change anything that environments share. */
  environments?: string[] | null | undefined;
  /** The only agents that the key can use, with their sessions, approvals, schedules, worker turns, files and usage; null: all. A child session belongs to the agent that runs it. What does not belong to an agent is closed to a restricted key. */
  agents?: string[] | null | undefined;
  /** How many requests the key can make in a minute, on all nodes together; null: no limit of its own. */
  requestsPerMinute?: number | null | undefined;
  /** What the sessions of the key can cost in a UTC day, in US dollars; null: no limit. Then their turns end with `budgetReached`, and the key starts no more. Needs a configured price for the models. */
  maxCostUsdPerDay?: number | null | undefined;
  metadata?: Metadata | undefined;
} & ({
  permission: Permission;
  /** What the key can do, scope by scope, instead of a `permission`. */
  scopes?: undefined;
} | {
  permission?: undefined;
  /** What the key can do, scope by scope, instead of a `permission`. */
  scopes: Scope[];
});

export type CreateSchedule = {
  agentId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  /** For people; several schedules can have the same. null: it has none. */
  name?: string | null | undefined;
  /** The first message of each session; null: it is opened idle, without a turn. */
  input?: Content | null | undefined;
  /** Values of your own, set on each session that it opens. */
  metadata?: Metadata | undefined;
  /** End user of each session. */
  endUser?: EndUser | null | undefined;
  /** Budget of each session. */
  budget?: Budget | null | undefined;
  status?: ScheduleStatus | undefined;
  /** Whether each session is completed when its turn ends and no message is queued. Default: true. */
  closeOnIdle?: boolean | undefined;
} & ({
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). If both days are given, one of them must match; with `+` before the day of week, both must. Exactly one of `cron` and `at` is required. */
  cron: string;
  /** The time zone of `cron`: an IANA name such as `Europe/Berlin`, or `UTC`, the default. When clocks change, a time of day that does not exist runs at the end of the gap, and one that occurs twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone?: string | null | undefined;
  /** The time at which it opens its only session, in the future. Exactly one of `cron` and `at` is required. */
  at?: null | undefined;
} | {
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). If both days are given, one of them must match; with `+` before the day of week, both must. Exactly one of `cron` and `at` is required. */
  cron?: null | undefined;
  /** The time zone of `cron`: an IANA name such as `Europe/Berlin`, or `UTC`, the default. When clocks change, a time of day that does not exist runs at the end of the gap, and one that occurs twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone?: null | undefined;
  /** The time at which it opens its only session, in the future. Exactly one of `cron` and `at` is required. */
  at: string;
});

export interface CreateSessionShare {
  title?: string | undefined;
  /** Also show tool calls with their inputs and results. Default: `false`. */
  includesTools?: boolean | undefined;
  /** At most a year from now; by default in 7 days. */
  expiresAt?: string | undefined;
}

export interface CreateSessionToken {
  scopes: ('read' | 'send' | 'decide')[];
  /** How long the token is valid. The page that uses it can get a new one at any time. Default: `3600`. */
  expiresInSeconds?: number | undefined;
}

export interface CreateWebhookSubscription {
  /** The name of an environment, such as `production`. */
  environment: string;
  /** `https`, without user info, at a public address; `http` and private addresses if the operator allows them. Or the built-in `signalbox:test-receiver`. */
  url: string;
  /** What is delivered. `message.reset` is included whenever a type that it voids is: `message.chunk`, `step.started`, `message.started`, `reasoning.chunk`, `tool.input.chunk`. */
  chunkTypes?: ChunkType[] | undefined;
}

export interface CreatedDestination {
  destination: Destination;
  /** `whsec_` and 44 characters of base64, shown only once. Absent only from an idempotent replay that was requested with another credential. */
  signingSecret?: string;
}

export interface CreatedInvitation {
  invitation: Invitation;
  /** Pass it on yourself; it is shown only once. Absent only from an idempotent replay by another sign-in. */
  link?: string;
}

export interface CreatedSessionShare {
  share: SessionShare;
  /** Pass it on yourself; it is shown only once. Absent only from an idempotent replay by another key or sign-in. */
  link?: string;
}

export interface CreatedWebhookSubscription {
  webhookSubscription: WebhookSubscription;
  /** `whsec_` and 44 characters of base64, shown only once. Absent only from an idempotent replay that was requested with another credential. */
  signingSecret?: string;
}

export type Decision = 'approved' | 'denied' | 'expired' | 'cancelled';

/** The session, or else the resource, that the records are about. Its deliveries are sent in order. */
export interface DeliveredResource {
  type: string;
  id: string;
}

export interface Destination {
  destinationId: string;
  name: string;
  type: DestinationType;
  /** Which records are sent: types such as `session.failed`, groups such as `approval.*`, or `*` for all. A type that does not exist is refused, and so is a group without types. Records about the destination itself are never sent to it. */
  eventTypes: string[];
  /** Only records of this environment; null: of all, and of what belongs to none. */
  environment: string | null;
  /** Only records about these agents; null: all records. */
  agentIds: string[] | null;
  url: string;
  /** The names of your own headers, in lower case. */
  headerNames: string[];
  status: DestinationStatus;
  /** `gone`: it responded with 410; `failing`: it has failed for 5 days. */
  disabledReason: string | null;
  /** Version of the newest signing secret; counts from 1. */
  secretVersion: number;
  /** Until then the previous secret also signs; null: there is none. */
  previousSecretExpiresAt: string | null;
  /** The newest version that the receiver accepted. */
  confirmedSecretVersion: number | null;
  createdAt: string;
  updatedAt: string;
  /** When a delivery last succeeded. While deliveries succeed, it is updated every 15 s. */
  lastSuccessAt: string | null;
  lastFailureAt: string | null;
  health: DestinationHealth;
}

export interface DestinationDelivery {
  deliveryId: string;
  destinationId: string;
  status: DestinationDeliveryStatus;
  resource: DeliveredResource;
  eventCount: number;
  firstSequence: number;
  lastSequence: number;
  /** The last record about the same resource that was to be sent before, as in `X-Service-Previous-Cursor`; null: none. A receiver that does not have it has missed a delivery. */
  previousSequence: number | null;
  /** Number of attempts so far. */
  attemptCount: number;
  createdAt: string;
  /** When it is sent. If the destination is being probed, it is sent as a probe or after one was accepted. */
  nextAttemptAt: string | null;
  finishedAt: string | null;
}

export type DestinationDeliveryStatus = 'pending' | 'succeeded' | 'exhausted' | 'cancelled';

export interface DestinationDeliveryWithAttempts {
  deliveryId: string;
  destinationId: string;
  status: DestinationDeliveryStatus;
  resource: DeliveredResource;
  eventCount: number;
  firstSequence: number;
  lastSequence: number;
  /** The last record about the same resource that was to be sent before, as in `X-Service-Previous-Cursor`; null: none. A receiver that does not have it has missed a delivery. */
  previousSequence: number | null;
  /** Number of attempts so far. */
  attemptCount: number;
  createdAt: string;
  /** When it is sent. If the destination is being probed, it is sent as a probe or after one was accepted. */
  nextAttemptAt: string | null;
  finishedAt: string | null;
  /** The last 50, oldest first. Your own headers are not among those of the request. */
  attempts: WebhookAttempt[];
  /** The body, identical in every attempt; null if its records are no longer in the log. */
  requestBody: string | null;
}

/** The health of the destination, at most a second old. */
export interface DestinationHealth {
  state: 'healthy' | 'failing' | 'degraded' | 'blocked';
  /** Why nothing can be sent; null: deliveries can be attempted. */
  blockedBy: 'no_delivery_node' | 'secret_unreadable' | 'url_not_allowed' | null;
  /** A description of the cause and how to fix it. */
  reason: string | null;
  /** Time of the first failed attempt since the last success. */
  failingSince: string | null;
  /** Failed attempts in a row. From the fifth on, only probes count. */
  consecutiveFailures: number;
  /** The `error` of the last attempt; null: it was accepted. */
  lastError: string | null;
  /** The HTTP status of that attempt; null: there was no response. */
  lastStatus: number | null;
  /** After 5 failures in a row: the time of the next probe. Until one is accepted, deliveries wait. */
  nextProbeAt: string | null;
  /** Records that retention deleted before the destination read them, the latest such gap; null: none since it was created or recovered. */
  lostEvents: LostEvents | null;
}

export type DestinationStatus = 'enabled' | 'paused' | 'disabled';

export type DestinationType = 'webhook';

/** Run this definition instead of a version. Needs the scope `agents:write` as well. */
export interface Draft {
  definition: CreateAgent;
  /** By the name of a tool of the definition: what its calls get instead of being run. For an `mcp` tool, the name of the server mocks all of its tools, and `server__tool` one of them; the tools are still listed by the server. */
  mocks?: Record<string, ToolMock> | undefined;
}

/** The user of your application that a session is for. */
export interface EndUser {
  /** Your own id of the user. Upper and lower case differ. */
  id: string;
  /** Shown in the console. */
  name?: string | undefined;
}

export interface EndUserDetails {
  /** Your own id of the user. Upper and lower case differ. */
  endUserId: string;
  /** Whether there is any session for the end user. */
  hasSessions: boolean;
  /** The latest one; null if the end user was never erased. */
  erasure: Erasure | null;
}

export interface Envelope {
  event: 'session.chunks';
  /** The name of an environment, such as `production`. */
  environment: string;
  sessionId: string;
  agentId: string;
  /** The position of a chunk in its session. */
  cursor: string;
  timestamp: string;
  chunks: Chunk[];
}

export interface Environment {
  environmentId: string;
  /** The name of an environment, such as `production`. */
  name: string;
  /** How many days sessions are kept after they end, with their transcript, journal and deliveries. A shorter limit of the operator takes precedence; null: the limit of the operator. */
  keepSessionsDays: number | null;
  /** How often it calls models, for all nodes of the service together, and what waits. Empty: no limits. */
  modelLimits: ModelLimit[];
  /** How many secrets it has. Null for callers without the scope `secrets:manage`. */
  secretCount: number | null;
  createdAt: string;
}

export interface EnvironmentSecret {
  name: string;
  /** The only hosts that this secret is sent to: `api.example.com`, `*.example.com`, with or without a port. */
  allowedHosts: string[];
  /** Incremented each time the secret is set. */
  version: number;
  updatedAt: string;
}

export interface Erasure {
  status: ErasureStatus;
  /** Sessions deleted so far, including child sessions and forks. */
  deletedSessions: number;
  /** Files deleted so far: files that these sessions used or created, except files that others use too. */
  deletedFiles: number;
  /** Schedules deleted so far: schedules that opened sessions for the end user. */
  deletedSchedules: number;
  startedAt: string;
  finishedAt: string | null;
}

export type ErasureStatus = 'running' | 'finished';

export type ErrorCode = 'invalid_request' | 'invalid_cursor' | 'missing_token' | 'malformed_token' | 'invalid_token' | 'token_expired' | 'token_rotated' | 'token_revoked' | 'session_token_invalid' | 'session_token_revoked' | 'session_token_expired' | 'signed_out' | 'sign_in_failed' | 'insufficient_permission' | 'not_an_approver' | 'person_required' | 'api_key_required' | 'sign_in_again' | 'csrf_refused' | 'origin_not_allowed' | 'ip_not_allowed' | 'not_found' | 'link_invalid' | 'method_not_allowed' | 'request_timeout' | 'conflict' | 'email_taken' | 'last_owner' | 'subscription_exists' | 'environment_exists' | 'idempotency_conflict' | 'idempotency_in_progress' | 'session_ended' | 'session_busy' | 'turn_not_finished' | 'turn_not_failed' | 'approval_already_resolved' | 'already_decided_by_you' | 'turn_lost' | 'agent_archived' | 'storage_full' | 'precondition_failed' | 'payload_too_large' | 'uri_too_long' | 'unsupported_media_type' | 'range_invalid' | 'file_invalid' | 'file_not_taken' | 'url_not_allowed' | 'budget_invalid' | 'tool_unsupported' | 'rate_limited' | 'queue_full' | 'key_budget_exceeded' | 'budget_exceeded' | 'headers_too_large' | 'internal_error' | 'unavailable';

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
  /** The agent that it is about, or whose session, approval, schedule or tool server it is about. Absent if there is none, and in records of releases that did not write it. */
  agentId?: string;
  /** `{ field: [before, after] }`. Never contains a secret; a value longer than 4,096 characters is replaced by its size and SHA-256, `{ bytes, sha256 }`, and a value that may be personal data of an end user by its size, `{ bytes }`. */
  changes: Record<string, [unknown, unknown]> | null;
  context: EventContext;
  /** Hash of the previous record; 64 zeros for the first. */
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

export type EventType = 'api_key.created' | 'api_key.updated' | 'api_key.rotated' | 'api_key.old_secret_deleted' | 'api_key.deleted' | 'agent.created' | 'agent.updated' | 'agent.archived' | 'agent.tool_tested' | 'session_token.created' | 'environment.created' | 'environment.updated' | 'environment.deleted' | 'environment_secret.set' | 'environment_secret.deleted' | 'session.created' | 'session.forked' | 'session.updated' | 'session.interrupted' | 'session.retried' | 'session.compaction_requested' | 'session.closing' | 'session.deleted' | 'session.shared' | 'session.share_revoked' | 'session.waiting' | 'session.idle' | 'session.completed' | 'session.failed' | 'session.cancelled' | 'turn.failed' | 'tool_call.outcome_unknown' | 'tool_server.unavailable' | 'tool_server.available' | 'approval.requested' | 'approval.decided' | 'approval.resolved' | 'file.created' | 'file.deleted' | 'end_user.erasure_started' | 'end_user.erased' | 'schedule.created' | 'schedule.updated' | 'schedule.deleted' | 'schedule.opened' | 'schedule.missed' | 'schedule.failed' | 'webhook_subscription.created' | 'webhook_subscription.updated' | 'webhook_subscription.deleted' | 'webhook_subscription.secret_rotated' | 'webhook_subscription.secret_confirmed' | 'webhook_subscription.degraded' | 'webhook_subscription.disabled' | 'webhook_subscription.enabled' | 'webhook_delivery.exhausted' | 'webhook_delivery.resent' | 'webhook_delivery.recovered' | 'destination.created' | 'destination.updated' | 'destination.deleted' | 'destination.enabled' | 'destination.disabled' | 'destination.degraded' | 'destination.secret_rotated' | 'destination.secret_confirmed' | 'destination.recovered' | 'budget.created' | 'budget.updated' | 'budget.deleted' | 'budget.threshold_reached' | 'model.ending' | 'organization.created' | 'organization.updated' | 'user.invited' | 'user.invitation_withdrawn' | 'user.joined' | 'user.role_changed' | 'user.can_decide_changed' | 'user.removed' | 'user.signed_in' | 'user.sign_in_failed' | 'user.signed_out' | 'user.password_reset_requested' | 'user.password_reset' | 'user.password_changed' | 'user.passkey_added' | 'user.passkey_removed' | 'user.provider_connected' | 'user.provider_disconnected' | 'access.denied';

export interface ExpiringSecret {
  /** The beginning and the last four characters of the secret. */
  preview: string;
  expiresAt: string;
}

export interface FieldError {
  path: string;
  message: string;
}

export type FileContent = Blob;

export interface FileCreatedChunk {
  type: 'file.created';
  /** The call that returned the file. Comes before its `tool.result`. */
  toolCallId: string;
  file: FilePart;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface FileInput {
  type: 'file';
  fileId: string;
}

export interface FilePart {
  type: 'file';
  fileId: string;
  /** Detected from the bytes, such as `image/png`. Text keeps the type that was sent if it is `text/plain`, `text/csv`, `text/markdown`, `text/html` or `application/json`, and has its charset if it is not UTF-8: `text/csv; charset=windows-1252`. `application/octet-stream` is everything unknown. */
  mediaType: string;
  /** The size of the content. */
  bytes: number;
  filename?: string;
}

export interface ForkSession {
  /** The last turn that the fork inherits; 0: none. Default: the last finished turn. A turn that failed has finished. */
  atTurn?: number | undefined;
  /** Always use this version; by default, as the origin does. */
  agentVersion?: number | undefined;
  /** Continue with this definition instead of a version. Needs the scope `agents:write` as well. */
  draft?: Draft | undefined;
  input?: Content | undefined;
  metadata?: Metadata | undefined;
  /** Default: that of the origin. The usage of a fork starts at zero. */
  budget?: Budget | null | undefined;
  /** Complete the fork when a turn ends and no message is queued. */
  closeOnIdle?: boolean | undefined;
}

export interface ForkedFrom {
  sessionId: string;
  turn: number;
}

export interface HttpHeader {
  name: string;
  value: string;
}

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `{{input.x}}`, `{{secrets.NAME}}`, `{{session.endUser.id}}` and `{{session.endUser.name}}` are allowed in path and query, but not in scheme, host or port. */
  url: string;
  headers?: Record<string, string> | undefined;
  /** JSON. A string that consists only of `"{{input.n}}"` is replaced by the value with its JSON type. */
  body?: unknown;
}

/** As in an agent, saved or not. */
export interface HttpTool {
  type: 'http';
  /** The name by which the model calls the tool; unique in the agent. */
  name: string;
  description: string;
  inputSchema: JsonSchema;
  request: HttpRequest;
  /** Whether a call has an effect outside of the service. Default: true for `http` tools whose method is not GET, otherwise false. */
  effectful?: boolean | undefined;
  approval?: ToolApproval | undefined;
  /** Whether a call can be repeated after a crash. Default: false. */
  idempotent?: boolean | undefined;
  /** Default: `30`. */
  timeoutSeconds?: number | undefined;
}

/** An invitation link that has not been used yet. */
export interface Invitation {
  invitationId: string;
  role: Role;
  /** null: all that the role lets them decide. */
  canDecide: CanDecide | null;
  /** The only email that can accept it; null: any. */
  email: string | null;
  name: string | null;
  /** The name of the person who created it. */
  invitedBy: string;
  expiresAt: string;
  createdAt: string;
}

/** A JSON Schema (draft 2020-12) of an object. */
export type JsonSchema = Record<string, unknown>;

export interface LastScheduleRun {
  /** When it was due; of a manual run, when it was started. Different for each run. */
  scheduledAt: string;
  /** Whether a caller started it, instead of its time. */
  manual: boolean;
  status: ScheduleRunStatus;
  /** The session that was opened; null unless `opened`. */
  sessionId: string | null;
  /** How that session is now; null if it was deleted, or if the caller cannot read it: that needs `sessions:read`. */
  session: ScheduleRunSession | null;
  /** Why no session could be opened; null unless `failed`. */
  error: SessionError | null;
}

export interface LeftOut {
  /** Described to the model, and not sent. */
  fileIds: string[];
  /** A note says that a message is missing. */
  messageIds: string[];
  /** Not offered. The name of an MCP server is for all of its tools. */
  tools: string[];
  /** Files that a model’s provider refused, with the `provider/model`. The service left them out of its own accord, and the request was accepted. Other models get them. */
  refusedFiles: {
    fileId: string;
    model: string;
  }[];
}

export interface LeftOutTool {
  name: string;
  reason: string;
}

export interface Limits {
  /** Default: `20`. */
  maxStepsPerTurn?: number | undefined;
  /** For one model call; null: the limit of the model. */
  maxOutputTokens?: number | null | undefined;
  /** How many times in a turn the model is called again to continue a response that its token limit has cut. Each time is a step. Not for `worker`. Default: `0`. */
  continueWhenCut?: number | undefined;
  /** How long a turn can run; time spent `waiting` does not count. Default: `600`. */
  turnTimeoutSeconds?: number | undefined;
  /** How long a turn waits for a model that is unavailable; the session is `waiting`, and the time does not count toward `turnTimeoutSeconds`. It continues within seconds once the model responds again. 0: the turn fails after its first retries. Default: `900`. */
  modelOutageSeconds?: number | undefined;
  /** How long an approval stays open; null: no limit. */
  approvalTimeoutSeconds?: number | null | undefined;
  /** `deny`: the call is denied and the turn continues. `cancel`: the session is cancelled. Default: `"deny"`. */
  onApprovalTimeout?: 'deny' | 'cancel' | undefined;
  /** How many tokens a model call may read before older messages are replaced by a summary; null: three quarters of the context window of the model, or 100,000 if it is not known. */
  compactAtTokens?: number | null | undefined;
}

export interface ListMcpTools {
  server: McpTool;
}

export interface ListedMcpTool {
  /** The server’s own name, as in `allowedTools`. */
  name: string;
  /** The name by which a model calls it. */
  offeredAs: string;
  description: string;
  inputSchema: JsonSchema;
  /** Whether calls need an approval, by `approval` or by default. */
  needsApproval: boolean;
}

export interface ListedSession {
  sessionId: string;
  /** ID of the agent. A draft without an agent has an ID that no agent has, the same for all such sessions of the organization. */
  agentId: string;
  /** Version of the agent in the current or last turn; null before the first, 0 if the session runs a draft. */
  agentVersion: number | null;
  /** Whether the session runs a definition that was not saved. It is not delivered to webhooks. The sessions that it opens are drafts as well. */
  draft: boolean;
  /** The name of an environment, such as `production`. */
  environment: string;
  status: SessionStatus;
  waitingFor: WaitingFor | null;
  stopReason: StopReason | null;
  /** 0 before the first turn; a fork starts with that of its origin. */
  turn: number;
  /** Cursor of the last chunk; null before the first. With `SIGNALBOX_TAIL`, of a chunk up to 20 seconds earlier while a response streams. */
  cursor: string | null;
  usage: Usage;
  budget: Budget | null;
  /** Why the last turn failed, until the next one starts. */
  error: SessionError | null;
  /** What models do not get, because a retry left it out; null if there is nothing. */
  leftOut: LeftOut | null;
  metadata: Metadata;
  /** For whom it is; never changes. Child sessions and forks have that of the session that they come from. */
  endUser: EndUser | null;
  /** For a child session: the session whose `agent` tool opened it. */
  parentSessionId: string | null;
  /** For a fork: the session whose conversation it continues, and the turn after which. That session may be deleted. */
  forkedFrom: ForkedFrom | null;
  createdAt: string;
  updatedAt: string;
  endedAt: string | null;
  /** The first words of its first message; null if there is none. */
  preview: string | null;
  /** How long models and tools have worked, in milliseconds, up to some seconds ago: without the time in which it waited for approvals or for results of `client` tools. Null if it is not known yet. */
  workingMs: number | null;
}

export interface LostEvents {
  from: number;
  to: number;
}

/** As in an agent, saved or not. All tools are listed, whatever `allowedTools` says. */
export interface McpTool {
  type: 'mcp';
  /** Prefix of the names of the server's tools; unique in the agent. */
  name: string;
  /** URL of the server. */
  url: string;
  /** Sent with every request; can contain `{{secrets.NAME}}`, `{{session.endUser.id}}` and `{{session.endUser.name}}`. */
  headers?: Record<string, string> | undefined;
  /** The tools to offer, by the server's own names. Default: all. Names that are not tools of the server are ignored. */
  allowedTools?: string[] | undefined;
  /** One policy for all tools, or one for each of the server's tools by its own name. Default: `never` for tools that the server marks as read-only, otherwise `always`. If a name has another policy than `never` and is not a tool of the server, none of the server's tools are offered. */
  approval?: ToolApproval | Record<string, ToolApproval> | undefined;
  /** Default: `30`. */
  timeoutSeconds?: number | undefined;
}

export interface McpToolList {
  /** By name. */
  tools: ListedMcpTool[];
  /** Tools that models can’t be offered, and why. Also names in `allowedTools`, and in `approval` with `never`, that are not tools of the server. */
  leftOut: LeftOutTool[];
  /** Why the tools could not be listed, or why a turn gets none of them: `approval` names a tool that the server does not have. */
  problem: string | null;
}

export interface Me {
  organization: {
    organizationId: string;
    name: string;
  };
  apiKey: ApiKey | null;
  /** A user who signs in to the console. */
  user: User | null;
  /** Null if no permission has exactly these scopes: a key that was given some, or an approver. */
  permission: Permission | null;
  scopes: Scope[];
}

export interface Member {
  userId: string;
  name: string;
  email: string;
  role: Role;
  /** null: all that the role lets them decide. */
  canDecide: CanDecide | null;
  joinedAt: string;
  /** Null if the person has not signed in since joining. */
  lastSignedInAt: string | null;
}

export interface Message {
  messageId: string;
  role: 'user' | 'assistant' | 'tool';
  /** null for a message whose turn has not started. */
  turn: number | null;
  content: MessagePart[];
  /** A response that does not match `outputSchema`, or the message that tells the model so. Not part of the conversation: leave it out where you show one. */
  rejected?: true;
  createdAt: string;
}

export interface MessageChunk {
  type: 'message.chunk';
  /** The next characters of the text. Empty if the chunk only has `sources`. */
  delta: string;
  /** What the text cites, each source once; if the provider names no citations, the sources that it has read. Left out if there are none. */
  sources?: Source[];
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export type MessagePart = TextPart | FilePart | ToolCallPart | ToolResultPart;

export interface MessageResetChunk {
  type: 'message.reset';
  /** Discard what the model has shown in this turn from this `seq` on (`step.started`, `message.started`, `message.chunk`, `reasoning.chunk`, `tool.input.chunk`): the model call failed, or its response was rejected. */
  fromSeq: number;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface MessageStartedChunk {
  type: 'message.started';
  /** The id that the response has in the transcript. It comes before everything that the response shows, also if that is no text. */
  messageId: string;
  step: number;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

/** Values of your own: at most 50, keys up to 64 characters, strings up to 512. */
export type Metadata = Record<string, string | number | boolean | null>;

/** Exactly one of `output` and `error`. */
export interface MockedResult {
  output?: unknown;
  error?: string | undefined;
}

export type Model = {
  /** The model's context window. Default: that of the model, if its name is well known. */
  contextTokens?: number | undefined;
  /** The files that the model takes besides text. Default: by its name, if the model is well known; otherwise every file is sent. */
  input?: ('image' | 'pdf' | 'audio')[] | undefined;
  settings?: ModelSettings | undefined;
  compaction?: ModelRef | undefined;
} & ({
  provider: 'openai' | 'anthropic' | 'google';
  /** The provider's name of the model; for all providers except `worker`. */
  model: string;
  /** For `worker`: the queue from which your program claims turns. */
  queue?: undefined;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl?: string | undefined;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: string | undefined;
  /** Models to use instead, in this order, while this one is unreachable, rate limited, out of quota, times out, responds with 5xx or refuses its key. Not for `worker`. */
  fallbacks?: ModelRef[] | undefined;
} | {
  provider: 'azure' | 'vertex' | 'bedrock' | 'openai-compatible';
  /** The provider's name of the model; for all providers except `worker`. */
  model: string;
  /** For `worker`: the queue from which your program claims turns. */
  queue?: undefined;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl: string;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: string | undefined;
  /** Models to use instead, in this order, while this one is unreachable, rate limited, out of quota, times out, responds with 5xx or refuses its key. Not for `worker`. */
  fallbacks?: ModelRef[] | undefined;
} | {
  provider: 'scripted';
  /** The provider's name of the model; for all providers except `worker`. */
  model: string;
  /** For `worker`: the queue from which your program claims turns. */
  queue?: undefined;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl?: undefined;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: undefined;
  /** Models to use instead, in this order, while this one is unreachable, rate limited, out of quota, times out, responds with 5xx or refuses its key. Not for `worker`. */
  fallbacks?: ModelRef[] | undefined;
} | {
  provider: 'worker';
  /** The provider's name of the model; for all providers except `worker`. */
  model?: undefined;
  /** For `worker`: the queue from which your program claims turns. */
  queue: string;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl?: undefined;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: undefined;
  /** Models to use instead, in this order, while this one is unreachable, rate limited, out of quota, times out, responds with 5xx or refuses its key. Not for `worker`. */
  fallbacks?: undefined;
});

export interface ModelAttempt {
  /** `provider/model`. */
  model: string;
  startedAt: string;
  endedAt: string;
  /** Why it failed; null if it succeeded. */
  error: SessionError | null;
}

export interface ModelCallUsage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  /** Input tokens that were written to the provider's cache. Left out if there are none. */
  cacheWriteTokens?: number;
  /** Searches of the web that the provider ran itself, as it reports them. Left out if there are none. */
  webSearches?: number;
  /** At the prices of the time of each call; null if no call had one. `Organization.pricesDate` is the day of the built-in prices. */
  costUsd: number | null;
}

export interface ModelLimit {
  /** The provider and the model as agents name them: `provider/model`. `*`: all models without a limit of their own, together. */
  model: string;
  /** How many calls are made in a minute. Each attempt of a call that fails counts. */
  requestsPerMinute: number | null;
  /** How many tokens calls read and write in a minute: estimated before a call, and corrected by what it used. A call that takes more than that is made alone. */
  tokensPerMinute: number | null;
  /** How many calls wait for it now. */
  waiting: number;
  /** Since when the first of them waits; null if none does. */
  waitingSince: string | null;
}

export interface ModelList {
  /** Models by name, without models that are known to generate no text, such as embedding models. */
  models: OfferedModel[];
  /** Why the provider’s list could not be read. */
  problem: ModelListProblem | null;
  listedAt: string;
  /** The day of the built-in prices, which apply where the operator has set none; null if they are off. */
  pricesDate: string | null;
}

export interface ModelListProblem {
  /** Such as `model_key_missing`, with the codes of a model call. */
  code: string;
  message: string;
}

export interface ModelPrices {
  inputUsd: number;
  /** Default: `inputUsd`. */
  cachedInputUsd?: number;
  /** Default: `inputUsd`. */
  cacheWriteInputUsd?: number;
  outputUsd: number;
  /** For one search of the web, if the operator has set it; else searches are in no cost. */
  webSearchUsd?: number;
  /** The prices of all tokens of a call with more input tokens than `aboveInputTokens`. */
  tiers?: {
    aboveInputTokens: number;
    inputUsd: number;
    /** Default: `inputUsd`. */
    cachedInputUsd?: number;
    /** Default: `inputUsd`. */
    cacheWriteInputUsd?: number;
    outputUsd: number;
  }[];
}

/** The model that summarizes the older messages of a long session. Default: this model. */
export type ModelRef = {
  /** The model's context window. Default: that of the model, if its name is well known. */
  contextTokens?: number | undefined;
  /** The files that the model takes besides text. Default: by its name, if the model is well known; otherwise every file is sent. */
  input?: ('image' | 'pdf' | 'audio')[] | undefined;
  settings?: ModelSettings | undefined;
} & ({
  provider: 'openai' | 'anthropic' | 'google';
  /** The provider's name of the model. */
  model: string;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl?: string | undefined;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: string | undefined;
} | {
  provider: 'azure' | 'vertex' | 'bedrock' | 'openai-compatible';
  /** The provider's name of the model. */
  model: string;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl: string;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: string | undefined;
} | {
  provider: 'scripted';
  /** The provider's name of the model. */
  model: string;
  /** Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default. */
  baseUrl?: undefined;
  /** The secret of the environment that contains the provider's key. Default: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_GENERATIVE_AI_API_KEY`, `AZURE_OPENAI_API_KEY`, `GOOGLE_VERTEX_API_KEY`, `AWS_BEARER_TOKEN_BEDROCK`. */
  apiKeySecret?: undefined;
});

export interface ModelResponse {
  content: MessagePart[];
  /** As far as the provider showed it. */
  reasoning: string | null;
  /** null if it did not end. */
  stopReason: 'endTurn' | 'toolCalls' | 'maxOutputTokens' | 'refusal' | null;
}

export interface ModelSettings {
  /** For `scripted`: one step per model call; the last one is repeated. */
  script?: ScriptStep[] | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  seed?: number | undefined;
  stopSequences?: string[] | undefined;
  /** How much the model reasons before it responds, on its own scale. Default: that of its provider. */
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | undefined;
}

export interface OfferedModel {
  /** The provider's name of the model. */
  model: string;
  displayName: string | null;
  /** Its context window, if known. */
  contextTokens: number | null;
  /** The files that it takes besides text, if known. */
  input: ('image' | 'pdf' | 'audio')[] | null;
  /** Null if they are not known. */
  prices: ModelPrices | null;
  /** The day on which the provider has announced to end it, if one is known. */
  endsAt: string | null;
  /** The model that the provider names in its place, if known. */
  replacement: string | null;
}

export interface OpenSession {
  /** Required without `draft`. With it, the agent that the session belongs to, for lists, usage and keys that are limited to agents. */
  agentId?: string | undefined;
  /** Always use this version; by default, each turn uses the newest. */
  agentVersion?: number | undefined;
  draft?: Draft | undefined;
  /** The name of an environment, such as `production`. */
  environment: string;
  input?: Content | undefined;
  metadata?: Metadata | undefined;
  endUser?: EndUser | null | undefined;
  budget?: Budget | null | undefined;
  /** Complete the session when a turn ends and no message is queued. */
  closeOnIdle?: boolean | undefined;
}

export interface OperationDetails {
  /** An approval has the id of its tool call. */
  operationId: string;
  kind: 'model' | 'tool' | 'approval' | 'compaction';
  /** `provider/model` (`worker/queue` if a program of yours is the model), or the name of the tool. Of a completed model call: the model that responded, which may be a fallback. */
  name: string;
  /** Counts from 1 in the turn: a model call and the tool calls that it requested. */
  step: number;
  status: TurnOperationStatus;
  /** null: not started. */
  startedAt: string | null;
  endedAt: string | null;
  /** As in chunks and in the transcript; null for a model call. */
  toolCallId: string | null;
  /** For a call of an `agent` tool: the session that it opened. */
  childSessionId: string | null;
  /** What runs the tool: a `client` tool waits for a program of yours, an `agent` tool for its child session, and a `mock` of a draft is not run. null for a model call, and if there is no such tool. */
  toolType: 'http' | 'mcp' | 'client' | 'agent' | 'mock' | null;
  /** Why it failed; the result of a denied, cancelled or interrupted call. At most 500 characters. */
  error: string | null;
  /** When the response of a model call began. null for a worker’s, and for calls of releases before 0.2.0. */
  firstTokenAt: string | null;
  /** Attempts of a model call that failed at least once, oldest first, at most the newest 20. Between two attempts the session waited. Empty if the first one succeeded. */
  attempts: ModelAttempt[];
  /** Usage of a completed model call or compaction. */
  usage: ModelCallUsage | null;
  /** For a completed compaction: the summary that the model gets instead of older messages. */
  compaction: Compaction | null;
  sessionId: string;
  turn: number;
  /** The version of the agent that it runs; if it was retried, the version since then. 0 if the session runs a draft. */
  agentVersion: number;
  /** Prompt of a model call. It is not stored, but built again by the code that built it. */
  prompt: Prompt | null;
  /** Response of a model call. */
  response: ModelResponse | null;
  /** Input of a tool call, after the edits of its approvers; else null. */
  input: unknown;
  /** Output of a tool call that succeeded; else null. */
  output: unknown;
  /** What was sent to the model’s provider, or to the server of an `http` or `mcp` tool. */
  request: SentRequest | null;
  /** What the server of an `http` or `mcp` tool responded. */
  received: ReceivedResponse | null;
  /** Approval of a tool call that needed one; else null. */
  approval: Approval | null;
  /** Whether `prompt` and `request` are what was sent, to the byte. If not, `notes` say why. */
  exact: boolean;
  /** What could not be built again, or is left out. */
  notes: string[];
}

export interface Organization {
  organizationId: string;
  name: string;
  allowedOrigins: string[];
  /** The day of the built-in prices, which apply where the operator has set none; null if they are off. */
  pricesDate: string | null;
  createdAt: string;
}

export interface OrganizationBudget {
  /** Your name for the budget, such as `monthly`. */
  name: string;
  limitUsd: number;
  /** A day or a calendar month, of UTC. */
  period: 'day' | 'month';
  /** Once the limit is reached, no turn begins and running turns end before their next model call. */
  stop: boolean;
  /** Only sessions of this environment; null: of all. */
  environment: string | null;
  /** Only sessions of this agent; null: of all. */
  agentId: string | null;
  /** Only sessions that count for this API key; null: of all. */
  keyId: string | null;
  /** Percentages of the limit that alert: each once in a period. */
  thresholds: number[];
  /** In the current period. Model calls without a price are not included. */
  spentUsd: number;
  /** The day of the built-in prices, which apply where the operator has set none; null if they are off. */
  pricesDate: string | null;
  periodStartsAt: string;
  periodEndsAt: string;
  /** The thresholds that were reached in the current period, lowest first. */
  alerts: {
    threshold: number;
    alertedAt: string;
  }[];
  createdAt: string;
  updatedAt: string;
}

/** The current state. Counting stops at 10000, which means that many or more. */
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
    /** Enabled subscriptions for which nothing can be sent (`health.blockedBy`), among the 1,000 newest. A subscription that also fails is counted in both. */
    blocked: number;
    /** Enabled subscriptions whose destination has been failing for less than a day. */
    failing: number;
    /** Enabled subscriptions whose destination has been failing for longer. */
    degraded: number;
    /** Subscriptions that the service has disabled. */
    disabled: number;
    /** Deliveries that wait for a retry. */
    waitingDeliveries: number;
  };
  schedules: {
    /** Schedules among the 1,000 newest that will run again and whose last runs failed (`failedRuns`). */
    failing: number;
  };
  /** API keys that expire within 14 days. */
  keysExpiringSoon: number;
}

export interface PageInfo {
  /** Whether there are more items after `nextCursor`. */
  hasMore: boolean;
  /** Where to continue, even if `hasMore` is false; `""` only if the list has always been empty. */
  nextCursor: string;
}

export interface PasswordReset {
  /** Pass it on yourself; it is shown only once. Absent only from an idempotent replay by another sign-in. */
  link?: string;
  expiresAt: string;
}

export interface PendingCall {
  toolCallId: string;
  /** The index of the call in the `toolCalls` of the step's response, from 0. */
  index: number;
  tool: string;
  /** The input to use; if an approver edited it, the edited one. */
  input: unknown;
}

/** Required unless the key is given `scopes`. */
export type Permission = 'read' | 'write' | 'admin';

export interface Problem {
  /** URL of an explanation of the code, relative to the service. */
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  requestId: string;
  errors?: FieldError[];
}

export interface Prompt {
  /** `provider/model` that it was for. */
  model: string;
  instructions: string;
  /** Oldest first, with the summary in place of the messages that it replaces. */
  messages: PromptMessage[];
  /** How many older messages the model got that are not in this response, because it would be too long. */
  messagesLeftOut: number;
  tools: PromptTool[];
  settings: Record<string, unknown>;
  maxOutputTokens: number | null;
  outputSchema: JsonSchema | null;
}

export interface PromptMessage {
  role: 'user' | 'assistant' | 'tool';
  content: MessagePart[];
}

export interface PromptTool {
  name: string;
  description: string;
  inputSchema: JsonSchema;
}

export interface RanToolCall {
  tool: string;
  input: unknown;
  output?: unknown;
  /** Why it failed; instead of `output`. */
  error?: string | undefined;
}

export interface ReasoningChunk {
  type: 'reasoning.chunk';
  /** What the model thinks before it responds. Only if the agent has `showReasoning` and the model sends it. */
  delta: string;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

/** Shown if the agent has `showReasoning`. */
export interface ReasoningDelta {
  type: 'reasoning';
  delta: string;
}

export interface ReceivedResponse {
  status: number;
  /** Without secrets. Headers that usually carry a credential have the value `[removed]`. */
  headers: HttpHeader[];
  /** Length of the body in bytes. */
  bytes: number;
  /** Body of a failed call: at most its first 16 KiB. null: the result of the call has it. */
  body: string | null;
}

export interface ReceivedWebhook {
  deliveryId: string;
  attempt: number;
  /** Whether it was signed with a secret that was valid when it was received. */
  verified: boolean;
  receivedAt: string;
  /** Names are in lower case. */
  headers: Record<string, string>;
  /** The exact body, or its first 64 KiB. */
  body: string;
  /** The body had more than 64 KiB. */
  truncated: boolean;
}

export type RecoverDeliveries = RecoverSince | RecoverSession;

export interface RecoverDestination {
  /** The `sequence` of the first record, or a time: records since then. */
  from: number | string;
}

export interface RecoverSession {
  sessionId: string;
  /** The position of a chunk in its session. */
  cursor: string;
}

export interface RecoverSince {
  since: string;
}

export interface ResolveApproval {
  decision: 'approved' | 'denied';
  /** The model sees the reason of a denial. */
  reason?: string | undefined;
  /** With `approved`: the complete input to use instead. It must match the tool's schema. */
  input?: unknown;
  /** With `approved`: `session` also approves later calls of this tool in this session. Default: `"once"`. */
  scope?: 'once' | 'session' | undefined;
  onBehalfOf?: string | undefined;
}

export interface ResolveApprovals {
  /** The approvals that get this decision. */
  operationIds: string[];
  decision: 'approved' | 'denied';
  /** The model sees the reason of a denial. */
  reason?: string | undefined;
  /** With `approved`: `session` also approves later calls of this tool in this session. Default: `"once"`. */
  scope?: 'once' | 'session' | undefined;
  onBehalfOf?: string | undefined;
}

export interface ResolvedBy {
  type: 'api_key' | 'user' | 'end_user' | 'system';
  id: string | null;
  name: string;
  /** The integrator's own user, as given by the caller. */
  onBehalfOf: string | null;
}

export interface RetrySession {
  /** What models do not get from now on, also in later turns and in forks, because a provider refuses a request with it: `error.retryWithout` of the session, or anything else of the conversation and the agent. See `leftOut` of the session. Nothing is left out if one of these is unknown: 400 names it. */
  without?: RetryWithout | undefined;
}

/** What the provider refuses, if that can be left out: the `without` of a retry of the turn. If it is one of several, all of them are named, and one may be enough. */
export interface RetryWithout {
  /** Files of the conversation. */
  fileIds?: string[] | undefined;
  /** Messages of the conversation. A response that called tools is left out together with the results. */
  messageIds?: string[] | undefined;
  /** Names of tools of the agent. The name of an MCP server is for all of its tools. */
  tools?: string[] | undefined;
}

/** `viewer` reads, `approver` also decides approvals, `member` also changes, `admin` also manages keys, secrets and people, `owner` also adds and removes owners. */
export type Role = 'viewer' | 'approver' | 'member' | 'admin' | 'owner';

export interface RotateKey {
  /** How long the old secret still works. Default: `0`. */
  gracePeriodSeconds?: number | undefined;
}

export interface RotateSecret {
  /** Default: `86400`. */
  gracePeriodSeconds?: number | undefined;
}

export interface RotatedSecret {
  /** `whsec_` and 44 characters of base64, shown only once. Absent only from an idempotent replay that was requested with another credential. */
  signingSecret?: string;
  secretVersion: number;
  previousSecretExpiresAt: string | null;
}

export interface Schedule {
  scheduleId: string;
  /** For people; several schedules can have the same. null: it has none. */
  name: string | null;
  agentId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  /** The first message of each session; null: it is opened idle, without a turn. */
  input: Content | null;
  /** Values of your own, set on each session that it opens. */
  metadata: Metadata;
  /** End user of each session. */
  endUser: EndUser | null;
  /** Budget of each session. */
  budget: Budget | null;
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). If both days are given, one of them must match; with `+` before the day of week, both must. Exactly one of `cron` and `at` is required. */
  cron: string | null;
  /** The time zone of `cron`: an IANA name such as `Europe/Berlin`, or `UTC`, the default. When clocks change, a time of day that does not exist runs at the end of the gap, and one that occurs twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone: string | null;
  /** The time at which it opens its only session, in the future. Exactly one of `cron` and `at` is required. */
  at: string | null;
  status: ScheduleStatus;
  /** Whether each session is completed when its turn ends and no message is queued. Default: true. */
  closeOnIdle: boolean;
  /** When it opens its next session; null: paused, or `at` has passed. */
  nextAt: string | null;
  /** The newest run; null before the first. */
  lastRun: LastScheduleRun | null;
  /** How many runs have failed since one succeeded, among the newest 10: no session could be opened, or the last turn of the session failed. Runs that were missed, are in progress or were cancelled, and those whose session was deleted or cannot be read by the caller, count neither way. */
  failedRuns: number;
  createdAt: string;
  updatedAt: string;
}

export interface SchedulePreview {
  /** The next times, earliest first; fewer if there are no more. */
  times: string[];
}

export interface ScheduleRun {
  /** When it was due; of a manual run, when it was started. Different for each run. */
  scheduledAt: string;
  /** Whether a caller started it, instead of its time. */
  manual: boolean;
  status: ScheduleRunStatus;
  /** The session that was opened; null unless `opened`. */
  sessionId: string | null;
  /** How that session is now; null if it was deleted, or if the caller cannot read it: that needs `sessions:read`. */
  session: ScheduleRunSession | null;
  /** Why no session could be opened; null unless `failed`. */
  error: SessionError | null;
  /** When the service processed it. */
  createdAt: string;
}

export interface ScheduleRunSession {
  status: SessionStatus;
  /** Why its last turn ended; null before. */
  stopReason: StopReason | null;
  /** Why its last turn failed, until the next one starts. */
  error: SessionError | null;
}

/** `opened`: a session was opened. `missed`: the service was not running, and a later run became due before it was back. `failed`: the session could not be opened. */
export type ScheduleRunStatus = 'opened' | 'missed' | 'failed';

/** `paused` opens nothing. When it is enabled again, it continues from that moment; times that have passed are not made up for. */
export type ScheduleStatus = 'enabled' | 'paused';

/** What a key can do; a scope includes no other. The operations name the one that they need. */
export type Scope = 'sessions:read' | 'agents:read' | 'usage:read' | 'events:read' | 'sessions:run' | 'approvals:decide' | 'agents:write' | 'environments:write' | 'webhooks:write' | 'schedules:write' | 'workers:run' | 'keys:manage' | 'secrets:manage' | 'organization:manage';

export interface ScriptStep {
  /** Streamed word by word. `{{input}}` is the last user message, `{{lastToolResult}}` the last tool result. */
  text?: string | undefined;
  toolCalls?: ScriptToolCall[] | undefined;
  /** What the model thinks first; for agents with `showReasoning`. */
  reasoning?: string | undefined;
  /** Wait before each word. */
  tokenDelayMs?: number | undefined;
  failWith?: 'rejected' | 'timeout' | 'rate_limited' | 'unavailable' | 'broken_stream' | 'refusal' | 'max_output_tokens' | undefined;
}

export interface ScriptToolCall {
  name: string;
  input?: unknown;
}

export interface SendMessage {
  content: Content;
  /** If a turn is running: `queue` starts a turn after it; `steer` ends it as `interrupted` and continues with this message; `reject` refuses the message with 409 `session_busy`. Default: `"queue"`. */
  onBusy?: 'queue' | 'steer' | 'reject' | undefined;
}

export interface SentRequest {
  method: string;
  url: string;
  headers: HttpHeader[];
  body: string | null;
  /** The secrets that it contains: each value is replaced by `shownAs`, which occurs nowhere else. */
  secrets: {
    name: string;
    shownAs: string;
  }[];
}

export interface Session {
  sessionId: string;
  /** ID of the agent. A draft without an agent has an ID that no agent has, the same for all such sessions of the organization. */
  agentId: string;
  /** Version of the agent in the current or last turn; null before the first, 0 if the session runs a draft. */
  agentVersion: number | null;
  /** Whether the session runs a definition that was not saved. It is not delivered to webhooks. The sessions that it opens are drafts as well. */
  draft: boolean;
  /** The name of an environment, such as `production`. */
  environment: string;
  status: SessionStatus;
  waitingFor: WaitingFor | null;
  stopReason: StopReason | null;
  /** 0 before the first turn; a fork starts with that of its origin. */
  turn: number;
  /** Cursor of the last chunk; null before the first. With `SIGNALBOX_TAIL`, of a chunk up to 20 seconds earlier while a response streams. */
  cursor: string | null;
  usage: Usage;
  budget: Budget | null;
  /** Why the last turn failed, until the next one starts. */
  error: SessionError | null;
  /** What models do not get, because a retry left it out; null if there is nothing. */
  leftOut: LeftOut | null;
  metadata: Metadata;
  /** For whom it is; never changes. Child sessions and forks have that of the session that they come from. */
  endUser: EndUser | null;
  /** For a child session: the session whose `agent` tool opened it. */
  parentSessionId: string | null;
  /** For a fork: the session whose conversation it continues, and the turn after which. That session may be deleted. */
  forkedFrom: ForkedFrom | null;
  createdAt: string;
  updatedAt: string;
  endedAt: string | null;
}

/** How the last call of the model failed, or which limit the call waits for; present if `type` is `model`. */
export interface SessionError {
  code: string;
  message: string;
  retryWithout?: RetryWithout;
}

/** A link by which anyone who has it can read a session. */
export interface SessionShare {
  shareId: string;
  sessionId: string;
  /** What its page is called; null: "Shared conversation". */
  title: string | null;
  /** Whether it shows tool calls with their inputs and results, and the files that tools created. */
  includesTools: boolean;
  /** The name of the person or API key. */
  createdBy: string;
  expiresAt: string;
  createdAt: string;
}

export type SessionStatus = 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export interface SessionStatusChunk {
  type: 'session.status';
  status: SessionStatus;
  waitingFor: WaitingFor | null;
  stopReason?: StopReason;
  /** Present if `stopReason` is `error`. */
  error?: SessionError;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface SessionToken {
  /** Give it to the end user only. It ends when it expires, and when the key that created it is rotated or deleted. Absent only from an idempotent replay that was requested with another credential. */
  token?: string;
  expiresAt: string;
  scopes: TokenScope[];
}

export interface SessionTurn {
  /** Counts from 1. */
  turn: number;
  /** The version of the agent that it runs; if it was retried, the version since then. 0 if the session runs a draft. */
  agentVersion: number;
  status: TurnStatus;
  /** null while it is running, and if it was cancelled. */
  stopReason: StopReason | null;
  /** Why it failed; null unless `failed`. */
  error: SessionError | null;
  startedAt: string;
  endedAt: string | null;
  usage: Usage;
  /** The `mcp` tools of the agent whose server could not list its tools when the turn needed them, by name, and the reason. */
  unavailableToolServers: UnavailableToolServer[];
  /** Tools that a model of the turn did not get, because its server would refuse them: there are too many, or their schema cannot be written for it. */
  toolsLeftOut: LeftOutTool[];
  /** In order: for each step its model call, then the tool calls, each after its approval. */
  operations: TurnOperation[];
}

export interface SetBudget {
  limitUsd: number;
  /** A day or a calendar month, of UTC. */
  period: 'day' | 'month';
  /** The name of an environment, such as `production`. */
  environment?: string | undefined;
  /** Only sessions of this agent. */
  agentId?: string | undefined;
  /** Only sessions that count for this API key. */
  keyId?: string | undefined;
  /** Percentages of the limit that alert: each once in a period. Default: `[50,80,100]`. */
  thresholds?: number[] | undefined;
  /** Once the limit is reached, no turn begins and running turns end before their next model call. Default: `false`. */
  stop?: boolean | undefined;
}

export interface SetCanDecide {
  /** The only agents whose approvals they can decide; null: all. A call in a child session belongs to the agent that runs it. */
  agents?: string[] | null | undefined;
  /** The only environments whose approvals they can decide; null: all. */
  environments?: string[] | null | undefined;
}

export interface SetModelLimit {
  /** The provider and the model as agents name them: `provider/model`. `*`: all models without a limit of their own, together. */
  model: string;
  /** How many calls are made in a minute. Each attempt of a call that fails counts. */
  requestsPerMinute?: number | null | undefined;
  /** How many tokens calls read and write in a minute: estimated before a call, and corrected by what it used. A call that takes more than that is made alone. */
  tokensPerMinute?: number | null | undefined;
}

export interface SetOrganization {
  allowedOrigins: string[];
}

export interface SetSecret {
  value: string;
  allowedHosts: string[];
}

export interface Source {
  /** Its address: `http` or `https`. Left out for a document without one. */
  url?: string;
  title?: string;
  /** The words that the model cites, if the provider names them. */
  citedText?: string;
}

export interface StepStartedChunk {
  type: 'step.started';
  /** Counts from 1 in each turn. It comes again if the response is void: `message.reset`. */
  step: number;
  /** `provider/model` that responds, or `worker/queue`. */
  model: string;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export type StopReason = 'endTurn' | 'maxOutputTokens' | 'maxSteps' | 'budgetReached' | 'refusal' | 'interrupted' | 'timedOut' | 'error';

export interface StoredFile {
  fileId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  /** Without a path. */
  filename: string | null;
  /** Detected from the bytes, such as `image/png`. Text keeps the type that was sent if it is `text/plain`, `text/csv`, `text/markdown`, `text/html` or `application/json`, and has its charset if it is not UTF-8: `text/csv; charset=windows-1252`. `application/octet-stream` is everything unknown. */
  mediaType: string;
  /** The size of the content. */
  bytes: number;
  /** SHA-256 of the content, in lowercase hexadecimal. */
  sha256: string;
  /** The session in which a tool created the file, which is deleted with it; null for an upload. */
  sessionId: string | null;
  /** Null for a file that a tool created, and for what was uploaded to an earlier release. */
  uploadedBy: Uploader | null;
  createdAt: string;
}

export interface TestTool {
  tool: HttpTool;
  /** What a model would give. Default: `{}`. */
  input?: unknown;
  endUser?: EndUser | undefined;
}

export interface TextInput {
  type: 'text';
  text: string;
}

export interface TextPart {
  type: 'text';
  text: string;
  /** What the text cites, each source once; if the provider names no citations, the sources that it has read. Left out if there are none. */
  sources?: Source[];
}

/** `read` reads and streams, `send` sends messages, tool results and files and stops turns, `decide` decides approvals that are left to the end user, `open` opens, forks and lists sessions. */
export type TokenScope = 'read' | 'send' | 'decide' | 'open';

export type Tool = HttpTool | McpTool | ClientTool | AgentTool | WebSearchTool;

/** Which calls need an approval; with `{ "policy", "by" }` also who may decide it. */
export type ToolApproval = ApprovalPolicy | ApprovalRule;

export interface ToolCallChunk {
  type: 'tool.call';
  tool: string;
  toolCallId: string;
  input: unknown;
  /** `provider`: the model's provider ran the call itself, such as a web search. It has its result already: never run it. */
  by?: 'provider';
  /** true: the call is not run; its `tool.result` is that of a mock of the draft. */
  mocked?: boolean;
  /** true: the call is not run; its `tool.result` says why. Never set on calls of `client` tools: you always run these. */
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
  /** `provider`: the model's provider ran the call itself, such as a web search. It has its result already: never run it. */
  by?: 'provider';
  /** true: the call was not run; its result is that of a mock. */
  mocked?: boolean;
}

export interface ToolInputChunk {
  type: 'tool.input.chunk';
  /** The call that the model is writing. The chunks of several calls can alternate. */
  toolCallId: string;
  toolName: string;
  /** The next characters of the input, which is JSON. Only if the agent has `showToolInput`. Run the call when its `tool.call` comes, not before. */
  delta: string;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

/** Shown if the agent has `showToolInput`. */
export interface ToolInputDelta {
  type: 'toolInput';
  /** The index that the call will have in `toolCalls`, from 0. */
  index: number;
  tool: string;
  delta: string;
}

export interface ToolMock {
  /** The first call of the tool in the session gets the first result, the second call the second, and so on; all calls after the last result get the last one. */
  results: MockedResult[];
  /** `keep`: mocked calls need an approval if calls of the tool do. `skip`: they need none. Default: `"skip"`. */
  approval?: 'keep' | 'skip' | undefined;
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
  /** Only for a call with the name of a `client` tool that you must not run and that therefore has no `tool.call`: it did not run, or the provider ran it. */
  tool?: string;
  /** Present together with `tool`. */
  input?: unknown;
  output?: unknown;
  error?: string;
  /** `provider`: the model's provider ran the call itself, such as a web search. It has its result already: never run it. */
  by?: 'provider';
  /** true: the call never ran. It was denied, expired or was cancelled before it started, its input did not match the schema, there is no such tool, or a token limit cut off the response. */
  notRun?: boolean;
  /** true: the call was interrupted while it ran; it may or may not have taken effect. */
  outcomeUnknown?: boolean;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface ToolResultPart {
  type: 'tool_result';
  toolCallId: string;
  /** The input with which the approver replaced the input of the call. */
  input?: unknown;
  output?: unknown;
  error?: string;
  /** `provider`: the model's provider ran the call itself, such as a web search. It has its result already: never run it. */
  by?: 'provider';
  outcomeUnknown?: boolean;
}

/** Never contains a secret of the environment. */
export interface ToolTest {
  /** Null if nothing was sent. */
  request: ToolTestRequest | null;
  /** Null if there was none. */
  response: ToolTestResponse | null;
  /** What the model would get. */
  output?: unknown;
  /** What the model would get instead. */
  error?: string;
  /** The request was sent and interrupted: it may have taken effect. */
  outcomeUnknown?: true;
  durationMs: number;
}

export interface ToolTestRequest {
  method: string;
  url: string;
  /** Name and value. Secrets are replaced by their names, and credentials of the server are removed. */
  headers: ([string, string])[];
  body: string | null;
}

export interface ToolTestResponse {
  status: number;
  /** Name and value. Secrets are replaced by their names, and credentials of the server are removed. */
  headers: ([string, string])[];
  bytes: number;
}

export interface TurnCompletedChunk {
  type: 'turn.completed';
  stopReason: StopReason;
  usage: Usage;
  /** The turn's last message of the model in the transcript. Left out if there is none. */
  messageId?: string;
  output?: unknown;
  /** Present if `stopReason` is `error`. */
  error?: SessionError;
  /** Counts from 1; 0 before the first turn. */
  turn: number;
  /** Counts from 1 in each turn, without gaps. */
  seq: number;
}

export interface TurnOperation {
  /** An approval has the id of its tool call. */
  operationId: string;
  kind: 'model' | 'tool' | 'approval' | 'compaction';
  /** `provider/model` (`worker/queue` if a program of yours is the model), or the name of the tool. Of a completed model call: the model that responded, which may be a fallback. */
  name: string;
  /** Counts from 1 in the turn: a model call and the tool calls that it requested. */
  step: number;
  status: TurnOperationStatus;
  /** null: not started. */
  startedAt: string | null;
  endedAt: string | null;
  /** As in chunks and in the transcript; null for a model call. */
  toolCallId: string | null;
  /** For a call of an `agent` tool: the session that it opened. */
  childSessionId: string | null;
  /** What runs the tool: a `client` tool waits for a program of yours, an `agent` tool for its child session, and a `mock` of a draft is not run. null for a model call, and if there is no such tool. */
  toolType: 'http' | 'mcp' | 'client' | 'agent' | 'mock' | null;
  /** Why it failed; the result of a denied, cancelled or interrupted call. At most 500 characters. */
  error: string | null;
  /** When the response of a model call began. null for a worker’s, and for calls of releases before 0.2.0. */
  firstTokenAt: string | null;
  /** Attempts of a model call that failed at least once, oldest first, at most the newest 20. Between two attempts the session waited. Empty if the first one succeeded. */
  attempts: ModelAttempt[];
  /** Usage of a completed model call or compaction. */
  usage: ModelCallUsage | null;
  /** For a completed compaction: the summary that the model gets instead of older messages. */
  compaction: Compaction | null;
}

export type TurnOperationStatus = 'running' | 'waiting' | 'succeeded' | 'failed' | 'unknown' | 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';

export type TurnStatus = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export interface UnavailableToolServer {
  name: string;
  reason: string;
}

export interface UpdateAgent {
  name?: string | undefined;
  model?: Model | `scripted/${string}` | `openai/${string}` | `anthropic/${string}` | `google/${string}` | `azure/${string}` | `vertex/${string}` | `bedrock/${string}` | `openai-compatible/${string}` | `worker/${string}` | undefined;
  description?: string | undefined;
  instructions?: string | undefined;
  tools?: Tool[] | undefined;
  limits?: Limits | undefined;
  /** Schema of the final response of a turn, as JSON; it appears as `output` in `turn.completed`. */
  outputSchema?: JsonSchema | null | undefined;
  /** Show the model's reasoning as `reasoning.chunk`s, if it sends any. It can contain what the instructions say. Default: `false`. */
  showReasoning?: boolean | undefined;
  /** Show the input of tool calls while the model writes it, as `tool.input.chunk`s. Default: `false`. */
  showToolInput?: boolean | undefined;
  metadata?: Metadata | undefined;
  /** The newest version that you know. If the agent has a newer one, nothing changes: 409 `conflict`. */
  expectedVersion?: number | undefined;
}

export interface UpdateDestination {
  name?: string | undefined;
  /** Which records are sent: types such as `session.failed`, groups such as `approval.*`, or `*` for all. A type that does not exist is refused, and so is a group without types. Records about the destination itself are never sent to it. */
  eventTypes?: string[] | undefined;
  /** Only records about these agents, their sessions, approvals and schedules. */
  agentIds?: string[] | null | undefined;
  /** `https`, without user info, at a public address; `http` and private addresses if the operator allows them. */
  url?: string | undefined;
  /** Headers of your own, such as `Authorization` for a receiver that wants a key. They are encrypted and never returned. They replace all earlier ones, and are deleted if the URL gets another scheme, host or port. `X-Service-*`, `Webhook-*`, `Content-*`, `Host`, `User-Agent` and headers of the connection are refused. */
  headers?: Record<string, string> | undefined;
  status?: 'enabled' | 'paused' | undefined;
}

export interface UpdateEnvironment {
  /** How many days sessions are kept after they end, with their transcript, journal and deliveries. A shorter limit of the operator takes precedence; null: the limit of the operator. */
  keepSessionsDays?: number | null | undefined;
  /** Replaces the limits of the environment for its models. Calls beyond a limit wait in order. A new limit applies to the calls that wait already. If a limit is removed, the calls that wait for it are made at once. */
  modelLimits?: SetModelLimit[] | undefined;
}

export type UpdateKey = {
  name?: string | undefined;
  /** The only addresses that the key can be used from, as addresses and CIDRs; null: any. */
  allowedIps?: string[] | null | undefined;
  /** The only environments that the key can use; null: all. A restricted key can read agents, but can't change anything that environments share. */
  environments?: string[] | null | undefined;
  /** The only agents that the key can use, with their sessions, approvals, schedules, worker turns, files and usage; null: all. A child session belongs to the agent that runs it. What does not belong to an agent is closed to a restricted key. */
  agents?: string[] | null | undefined;
  /** How many requests the key can make in a minute, on all nodes together; null: no limit of its own. */
  requestsPerMinute?: number | null | undefined;
  /** What the sessions of the key can cost in a UTC day, in US dollars; null: no limit. Then their turns end with `budgetReached`, and the key starts no more. Needs a configured price for the models. */
  maxCostUsdPerDay?: number | null | undefined;
  metadata?: Metadata | undefined;
} & ({
  /** Replaces the permission or the scopes. */
  permission?: Permission | undefined;
  /** Replaces the permission or the scopes. */
  scopes?: undefined;
} | {
  /** Replaces the permission or the scopes. */
  permission?: undefined;
  /** Replaces the permission or the scopes. */
  scopes?: Scope[] | undefined;
});

export interface UpdateMember {
  role?: Role | undefined;
  /** null: all that the role lets them decide. */
  canDecide?: SetCanDecide | null | undefined;
}

export interface UpdateOrganization {
  name: string;
}

/** A change of `cron`, `timezone`, `at` or `status` takes effect from now on: a run that is due but not yet processed is dropped. To switch between the two, send `cron: null` with `at`, or `at: null` with `cron`. */
export type UpdateSchedule = {
  agentId?: string | undefined;
  /** The name of an environment, such as `production`. */
  environment?: string | undefined;
  /** For people; several schedules can have the same. null: it has none. */
  name?: string | null | undefined;
  /** The first message of each session; null: it is opened idle, without a turn. */
  input?: Content | null | undefined;
  /** Values of your own, set on each session that it opens. */
  metadata?: Metadata | undefined;
  /** End user of each session. */
  endUser?: EndUser | null | undefined;
  /** Budget of each session. */
  budget?: Budget | null | undefined;
  status?: ScheduleStatus | undefined;
  /** Whether each session is completed when its turn ends and no message is queued. Default: true. */
  closeOnIdle?: boolean | undefined;
} & ({
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). If both days are given, one of them must match; with `+` before the day of week, both must. Exactly one of `cron` and `at` is required. */
  cron?: string | null | undefined;
  /** The time zone of `cron`: an IANA name such as `Europe/Berlin`, or `UTC`, the default. When clocks change, a time of day that does not exist runs at the end of the gap, and one that occurs twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone?: string | null | undefined;
  /** The time at which it opens its only session, in the future. Exactly one of `cron` and `at` is required. */
  at?: null | undefined;
} | {
  /** Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*\/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). If both days are given, one of them must match; with `+` before the day of week, both must. Exactly one of `cron` and `at` is required. */
  cron?: null | undefined;
  /** The time zone of `cron`: an IANA name such as `Europe/Berlin`, or `UTC`, the default. When clocks change, a time of day that does not exist runs at the end of the gap, and one that occurs twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`. */
  timezone?: null | undefined;
  /** The time at which it opens its only session, in the future. Exactly one of `cron` and `at` is required. */
  at?: string | null | undefined;
});

export interface UpdateSession {
  metadata?: Metadata | undefined;
}

export interface UpdateWebhookSubscription {
  /** `https`, without user info, at a public address; `http` and private addresses if the operator allows them. Or the built-in `signalbox:test-receiver`. */
  url?: string | undefined;
  /** What is delivered. `message.reset` is included whenever a type that it voids is: `message.chunk`, `step.started`, `message.started`, `reasoning.chunk`, `tool.input.chunk`. */
  chunkTypes?: ChunkType[] | undefined;
  status?: 'enabled' | 'paused' | undefined;
}

export interface Uploader {
  type: 'api_key' | 'user' | 'end_user';
  /** ID of the key, the member or the end user; null for a session token without an end user. */
  id: string | null;
  /** Name at the time of the upload. */
  name: string;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that came from the provider's cache. */
  cachedTokens: number;
  /** Input tokens that were written to the provider's cache. Left out if there are none. */
  cacheWriteTokens?: number;
  /** Searches of the web that the provider ran itself, as it reports them. Left out if there are none. */
  webSearches?: number;
  /** Model calls. */
  steps: number;
  toolCalls: number;
  /** At the prices of the time of each call; null if no call had one. `Organization.pricesDate` is the day of the built-in prices. */
  costUsd: number | null;
}

export interface UsageGroup {
  /** A day such as `2026-01-31`, an `agentId` (`""`: drafts of any agent), the name of an environment, `provider/model` (`worker/queue` for agents that a program of yours runs), the id of an end user (`""`: no end user, or one that was erased), or a `keyId` (`""`: opened by a person). */
  group: string;
  /** By API key: the name of the key, also after it was deleted. */
  name?: string | null;
  /** Including cached ones. */
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that the provider had in its cache. */
  cachedTokens: number;
  /** Input tokens that were written to the provider's cache. Left out if there are none. */
  cacheWriteTokens?: number;
  /** Searches of the web that the provider ran itself, as it reports them. Left out if there are none. */
  webSearches?: number;
  /** Model calls. */
  steps: number;
  /** Model calls not included in `costUsd`, because their model had no price. */
  unpricedSteps: number;
  /** To a billionth of a dollar; null if no call had a price. */
  costUsd: number | null;
  /** With `splitBy`: the parts of the day, of the 12 groups that cost most in the whole period. */
  split?: UsagePart[];
}

export interface UsagePart {
  /** As above; null: all groups that are not listed. */
  group: string | null;
  /** Including cached ones. */
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that the provider had in its cache. */
  cachedTokens: number;
  /** Input tokens that were written to the provider's cache. Left out if there are none. */
  cacheWriteTokens?: number;
  /** Searches of the web that the provider ran itself, as it reports them. Left out if there are none. */
  webSearches?: number;
  /** Model calls. */
  steps: number;
  /** Model calls not included in `costUsd`, because their model had no price. */
  unpricedSteps: number;
  /** To a billionth of a dollar; null if no call had a price. */
  costUsd: number | null;
}

export interface UsageReport {
  /** The beginning of the UTC day of the requested `from`. */
  from: string;
  /** The end of the UTC day of the requested `to`; exclusive. */
  to: string;
  groupBy: 'day' | 'agent' | 'environment' | 'model' | 'endUser' | 'apiKey';
  total: UsageSum;
  /** By day: every day in order, including days without usage. Otherwise the groups with usage, the most expensive first, then those with the most tokens; at most 1,000. */
  data: UsageGroup[];
  /** The sum of the groups beyond 1,000; null if all are listed. */
  other: UsageSum | null;
  /** The day of the built-in prices, which apply where the operator has set none; null if they are off. */
  pricesDate: string | null;
}

/** Sums of the whole period: `data` and `other` together. */
export interface UsageSum {
  /** Including cached ones. */
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that the provider had in its cache. */
  cachedTokens: number;
  /** Input tokens that were written to the provider's cache. Left out if there are none. */
  cacheWriteTokens?: number;
  /** Searches of the web that the provider ran itself, as it reports them. Left out if there are none. */
  webSearches?: number;
  /** Model calls. */
  steps: number;
  /** Model calls not included in `costUsd`, because their model had no price. */
  unpricedSteps: number;
  /** To a billionth of a dollar; null if no call had a price. */
  costUsd: number | null;
}

export interface User {
  userId: string;
  name: string;
  email: string;
}

export interface WaitingFor {
  type: 'approval' | 'toolResult' | 'session' | 'several' | 'model';
  operationIds: string[];
  toolCallIds: string[];
  sessionIds: string[];
  expiresAt: string | null;
  /** When the model is called again; present if `type` is `model`. A call that waits for a limit of the environment is made at about this time, or before. */
  retryAt?: string;
  error?: SessionError;
}

export interface WebSearchTool {
  type: 'web_search';
  /** Search only these domains and their subdomains. Not for `google` and `vertex`. */
  allowedDomains?: string[] | undefined;
  /** How many times one model call can search; a turn can have several. Not for `google` and `vertex`. */
  maxUses?: number | undefined;
}

export interface WebhookAttempt {
  /** Counts from 1; as in the header `X-Service-Attempt`. */
  attempt: number;
  at: string;
  durationMs: number;
  /** The HTTP status of the response; null: there was none. */
  status: number | null;
  /** The class of the error: `timeout`, `connect`, `not_allowed` … */
  error: string | null;
  secretVersion: number;
  /** Names are in lower case. */
  requestHeaders: Record<string, string>;
  /** The first 4 KiB of the response. */
  responseBody: string | null;
}

export interface WebhookDelivery {
  deliveryId: string;
  webhookSubscriptionId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  sessionId: string;
  status: WebhookDeliveryStatus;
  /** The cursor that the receiver acknowledged last; null: none. */
  previousCursor: string | null;
  /** The position of a chunk in its session. */
  cursor: string;
  /** Number of attempts so far. */
  attemptCount: number;
  createdAt: string;
  /** When it is retried. If the destination is being probed, it is sent as a probe or after one was accepted. */
  nextAttemptAt: string | null;
  finishedAt: string | null;
}

export type WebhookDeliveryStatus = 'pending' | 'succeeded' | 'exhausted' | 'cancelled';

export interface WebhookDeliveryWithAttempts {
  deliveryId: string;
  webhookSubscriptionId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  sessionId: string;
  status: WebhookDeliveryStatus;
  /** The cursor that the receiver acknowledged last; null: none. */
  previousCursor: string | null;
  /** The position of a chunk in its session. */
  cursor: string;
  /** Number of attempts so far. */
  attemptCount: number;
  createdAt: string;
  /** When it is retried. If the destination is being probed, it is sent as a probe or after one was accepted. */
  nextAttemptAt: string | null;
  finishedAt: string | null;
  /** The last 50, oldest first. */
  attempts: WebhookAttempt[];
  /** The body, identical in every attempt; null if it is no longer in the journal. */
  requestBody: string | null;
}

/** The health of the destination, at most a second old. */
export interface WebhookHealth {
  state: 'healthy' | 'failing' | 'degraded' | 'blocked';
  /** Why nothing can be sent; null: deliveries can be attempted. */
  blockedBy: 'no_delivery_node' | 'secret_unreadable' | 'url_not_allowed' | null;
  /** A description of the cause and how to fix it. */
  reason: string | null;
  /** Time of the first failed attempt since the last success. */
  failingSince: string | null;
  /** Failed attempts in a row. From the fifth on, only probes count. */
  consecutiveFailures: number;
  /** The `error` of the last attempt; null: it was accepted. */
  lastError: string | null;
  /** The HTTP status of that attempt; null: there was no response. */
  lastStatus: number | null;
  /** After 5 failures in a row: the time of the next probe. Until one is accepted, other deliveries wait. */
  nextProbeAt: string | null;
  /** The only session whose deliveries failed: while it is probed, the others continue. Null: none, or several. */
  failingSessionId: string | null;
}

export interface WebhookSubscription {
  webhookSubscriptionId: string;
  /** The name of an environment, such as `production`. */
  environment: string;
  url: string;
  /** What is delivered. `message.reset` is included whenever a type that it voids is: `message.chunk`, `step.started`, `message.started`, `reasoning.chunk`, `tool.input.chunk`. */
  chunkTypes: ChunkType[];
  status: WebhookSubscriptionStatus;
  /** `gone`: the destination responded with 410; `failing`: it has failed for 5 days. */
  disabledReason: string | null;
  /** Version of the newest signing secret; counts from 1. */
  secretVersion: number;
  /** Until then the previous secret also signs; null: there is none. */
  previousSecretExpiresAt: string | null;
  /** The newest version that the receiver accepted. */
  confirmedSecretVersion: number | null;
  createdAt: string;
  updatedAt: string;
  /** When a delivery last succeeded. While deliveries succeed, it is updated every 15 s. */
  lastSuccessAt: string | null;
  lastFailureAt: string | null;
  health: WebhookHealth;
}

export type WebhookSubscriptionStatus = 'enabled' | 'paused' | 'disabled';

export type WorkerDelta = string | ReasoningDelta | ToolInputDelta;

export interface WorkerSource {
  /** Its address: `http` or `https`. */
  url?: string | undefined;
  title?: string | undefined;
  citedText?: string | undefined;
}

export interface WorkerTool {
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** Whether your program runs its calls itself (a `client` tool). */
  client: boolean;
}

export interface WorkerTurn {
  workerTurnId: string;
  sessionId: string;
  agentId: string;
  agentVersion: number;
  /** The name of an environment, such as `production`. */
  environment: string;
  queue: string;
  turn: number;
  /** From 1 in each turn. */
  step: number;
  /** The position of a chunk in its session. */
  cursor: string;
  instructions: string;
  /** The transcript, oldest first, with the calls and results of this turn's earlier steps. Without calls that a provider ran itself. */
  messages: Message[];
  /** The tools that the step can call; empty with `pendingCalls`. */
  tools: WorkerTool[];
  /** If not empty, run these calls and complete with `toolResults`. If empty, respond to the step. */
  pendingCalls: PendingCall[];
  /** Outcomes of the calls of the previous step, in order. */
  outcomes: CallOutcome[];
  /** Schema of the response that ends the turn, as JSON. */
  outputSchema: JsonSchema | null;
  limits: {
    maxStepsPerTurn: number;
    maxOutputTokens: number | null;
    continueWhenCut: number;
    turnTimeoutSeconds: number;
    modelOutageSeconds: number;
    approvalTimeoutSeconds: number | null;
    onApprovalTimeout: 'deny' | 'cancel';
    compactAtTokens: number | null;
  };
  /** Whether reasoning that you append is shown. Otherwise it is ignored. */
  showReasoning: boolean;
  /** Whether tool input that you append is shown. Otherwise it is ignored. */
  showToolInput: boolean;
  metadata: Metadata;
  endUser: EndUser | null;
  leaseExpiresAt: string;
  /** When the turn times out. */
  deadlineAt: string | null;
}

/** The step failed and is not retried: the turn fails. */
export interface WorkerTurnError {
  /** Default: `worker_failed`. */
  code?: string | undefined;
  message: string;
}

/** The usage of the step; counts toward the budget. */
export interface WorkerUsage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens?: number | undefined;
  cacheWriteTokens?: number | undefined;
  /** Searches of the web that the provider ran itself. */
  webSearches?: number | undefined;
  costUsd?: number | undefined;
}

/** The input and result of every operation of the API. */
export interface Operations {
  /** Get the caller. The organization, the API key or user that sent the request, and its permission. `GET /api/v1/me`, any key. */
  getMe: {
    result: Me;
  };
  /** Create an API key. The secret is in this response only. `POST /api/v1/api_keys`, scope `keys:manage` (permission `admin`). */
  createKey: {
    body: CreateKey;
    result: {
      apiKey: ApiKeyWithSecret;
    };
  };
  /** List API keys. Newest first. `GET /api/v1/api_keys`, scope `keys:manage` (permission `admin`). */
  listKeys: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: ApiKey[];
      page: PageInfo;
    };
  };
  /** Get an API key. `GET /api/v1/api_keys/{keyId}`, scope `keys:manage` (permission `admin`). */
  getKey: {
    params: {
      keyId: string;
    };
    result: {
      apiKey: ApiKey;
    };
  };
  /** Update an API key. Changes the name, permission, limits or metadata. The secret does not change. `PATCH /api/v1/api_keys/{keyId}`, scope `keys:manage` (permission `admin`). */
  updateKey: {
    params: {
      keyId: string;
    };
    body: UpdateKey;
    result: {
      apiKey: ApiKey;
    };
  };
  /** Rotate an API key. Creates a new secret, which is in this response only. The old secret is refused from now on, or after `gracePeriodSeconds`. A key has at most two secrets: an older one that still works ends now. `POST /api/v1/api_keys/{keyId}/rotate`, scope `keys:manage` (permission `admin`). */
  rotateKey: {
    params: {
      keyId: string;
    };
    body: RotateKey;
    result: {
      apiKey: ApiKeyWithSecret;
    };
  };
  /** End the old secret of an API key. Ends the grace period of a rotation. Without an old secret that still works, nothing changes. `DELETE /api/v1/api_keys/{keyId}/old_secret`, scope `keys:manage` (permission `admin`). */
  deleteOldSecret: {
    params: {
      keyId: string;
    };
    result: {
      apiKey: ApiKey;
    };
  };
  /** Delete an API key. Revokes the key permanently. `DELETE /api/v1/api_keys/{keyId}`, scope `keys:manage` (permission `admin`). */
  deleteKey: {
    params: {
      keyId: string;
    };
    result: {
      keyId: string;
      deleted: true;
    };
  };
  /** Create an agent. `POST /api/v1/agents`, scope `agents:write` (permission `write`). */
  createAgent: {
    body: CreateAgent;
    result: {
      agent: Agent;
    };
  };
  /** List agents. The latest version of each, newest agent first. `GET /api/v1/agents`, scope `agents:read` (permission `read`). */
  listAgents: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** true: archived agents instead of active ones. */
      archived?: boolean | undefined;
      /** Only agents with all of these words, or parts of words, in their name, description, model, names of tools or id; in any order and case, with or without accents. */
      q?: string | undefined;
      /** Only agents with this model: `provider/model`, or `worker/queue`. Fallbacks do not count. */
      model?: string | undefined;
    };
    result: {
      data: Agent[];
      page: PageInfo;
    };
  };
  /** Get an agent. The latest version. `GET /api/v1/agents/{agentId}`, scope `agents:read` (permission `read`). */
  getAgent: {
    params: {
      agentId: string;
    };
    result: {
      agent: Agent;
    };
  };
  /** List versions of an agent. Newest first. `GET /api/v1/agents/{agentId}/versions`, scope `agents:read` (permission `read`). */
  listAgentVersions: {
    params: {
      agentId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: Agent[];
      page: PageInfo;
    };
  };
  /** Update an agent. Creates a new version with the given fields changed. Sessions use it from their next turn unless they are pinned to a version. `PATCH /api/v1/agents/{agentId}`, scope `agents:write` (permission `write`). */
  updateAgent: {
    params: {
      agentId: string;
    };
    body: UpdateAgent;
    result: {
      agent: Agent;
    };
  };
  /** Archive an agent. The current turn of each session finishes normally. New sessions and messages are refused with 409 `agent_archived`. The agent can still be read. `DELETE /api/v1/agents/{agentId}`, scope `agents:write` (permission `write`). */
  archiveAgent: {
    params: {
      agentId: string;
    };
    result: {
      agentId: string;
      deleted: true;
      archivedAt: string;
    };
  };
  /** List the models of a provider. Requests the list from the provider with the key that an agent in the environment would use, and adds what is known about each model. A list is kept for five minutes. If the provider does not respond, `problem` says why. `GET /api/v1/environments/{env}/models`, scope `agents:write` (permission `write`). */
  listModels: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    query: {
      provider: 'scripted' | 'openai' | 'anthropic' | 'google' | 'azure' | 'vertex' | 'bedrock' | 'openai-compatible';
      /** As in the model of an agent; required for `openai-compatible` and clouds. */
      baseUrl?: string | undefined;
      /** As in the model of an agent: the secret with the provider’s key. */
      apiKeySecret?: string | undefined;
    };
    result: {
      modelList: ModelList;
    };
  };
  /** Test an http tool. Sends the request of the tool once, with secrets of the environment and without an approval, and shows request and response without the secrets. The event log names the caller and the host. `POST /api/v1/environments/{env}/tool_tests`, scopes `agents:write` and `sessions:run` (permission `write`). */
  testTool: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    body: TestTool;
    result: {
      toolTest: ToolTest;
    };
  };
  /** List the tools of an MCP server. Connects to the server with secrets of the environment. If it does not respond, `problem` says why. `POST /api/v1/environments/{env}/mcp_tool_lists`, scopes `agents:write` and `sessions:run` (permission `write`). */
  listMcpTools: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    body: ListMcpTools;
    result: {
      mcpToolList: McpToolList;
    };
  };
  /** List environments. Newest first. `GET /api/v1/environments`, scope `agents:read` (permission `read`). */
  listEnvironments: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: Environment[];
      page: PageInfo;
    };
  };
  /** Create an environment. `POST /api/v1/environments`, scope `environments:write` (permission `write`). */
  createEnvironment: {
    body: CreateEnvironment;
    result: {
      environment: Environment;
    };
  };
  /** Update an environment. Changes how long ended sessions are kept, and how often models are called. A limit for a model that its provider does not have is refused with 400, if the environment can list the models of the provider. `PATCH /api/v1/environments/{env}`, scope `organization:manage` (permission `admin`). */
  updateEnvironment: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    body: UpdateEnvironment;
    result: {
      environment: Environment;
    };
  };
  /** Delete an environment. Refused with 409 `conflict` while it has open sessions, a webhook subscription or schedules. `DELETE /api/v1/environments/{env}`, scope `environments:write` (permission `write`). */
  deleteEnvironment: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    result: {
      environmentId: string;
      deleted: true;
    };
  };
  /** Stream an environment. Follows all sessions of the environment with Server-Sent Events: the envelopes that a webhook subscription would deliver, of its chunk types by default. The envelopes of a session are in order. Resumes with the chunks since `cursor` or `Last-Event-ID`, which is a time, so some of them may have been received before. An organization can have 20 of these streams open on a node. `GET /api/v1/environments/{env}/stream`, scope `sessions:read` (permission `read`). */
  streamEnvironment: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    query: {
      /** Start with the chunks of this time: the `id` of the last event that you received, or any time. Default: now. */
      cursor?: string | undefined;
      /** Only chunks of these types, comma separated. Cursors stay valid. */
      types?: string | undefined;
      /** Only sessions of this agent. */
      agentId?: string | undefined;
    };
    result: Envelope;
  };
  /** List secrets. By name. Values are never returned. `GET /api/v1/environments/{env}/secrets`, scope `secrets:manage` (permission `admin`). */
  listSecrets: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: EnvironmentSecret[];
      page: PageInfo;
    };
  };
  /** Set a secret. Creates or replaces the value and the hosts that may receive it. `PUT /api/v1/environments/{env}/secrets/{name}`, scope `secrets:manage` (permission `admin`). */
  setSecret: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
      name: string;
    };
    body: SetSecret;
    result: {
      secret: EnvironmentSecret;
    };
  };
  /** Delete a secret. `DELETE /api/v1/environments/{env}/secrets/{name}`, scope `secrets:manage` (permission `admin`). */
  deleteSecret: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
      name: string;
    };
    result: {
      name: string;
      deleted: true;
    };
  };
  /** Open a session. With `input`, the first turn starts immediately. Without it, the session is idle until the first message. With `draft`, it runs a definition that is not saved, which also needs the scope `agents:write`. `POST /api/v1/sessions`, scope `sessions:run` (permission `write`). */
  openSession: {
    body: OpenSession;
    result: {
      session: Session;
    };
  };
  /** List sessions. Newest first by default. A page of a search may be shorter than its `limit`, or empty, although there are more: continue while `hasMore` is true. `GET /api/v1/sessions`, scope `sessions:read` (permission `read`). */
  listSessions: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** Only sessions with all of these words in their messages, tool inputs, end user or metadata, in any order, case and with or without accents; the last word may be the beginning of one. Or the beginning of a session id. The words of a message are found some seconds after it was written. */
      q?: string | undefined;
      status?: 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined;
      /** `true`: only sessions whose last turn failed, whether they have ended or not. */
      hasError?: boolean | undefined;
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      /** true: only sessions that run a draft; false: only others. */
      draft?: boolean | undefined;
      /** Only child sessions of this session. */
      parentSessionId?: string | undefined;
      /** Only forks of this session, which may be deleted. */
      forkedFromSessionId?: string | undefined;
      /** Only sessions for this end user, including child sessions and forks. */
      endUserId?: string | undefined;
      /** Only sessions created at this time or later. */
      since?: string | undefined;
      /** Only sessions created before this time. */
      until?: string | undefined;
      /** `metadata[key]=value`: sessions whose metadata has this value, compared as text. If you give several pairs, put the one that the fewest sessions have first. A page takes longest if many sessions match each of several filters and hardly any matches all. */
      metadata?: Record<string, string> | undefined;
      /** Oldest or newest first. Default: `"desc"`. */
      order?: 'asc' | 'desc' | undefined;
    };
    result: {
      data: ListedSession[];
      page: PageInfo;
    };
  };
  /** Count sessions. Counting stops at 10000. `GET /api/v1/sessions/count`, scope `sessions:read` (permission `read`). */
  countSessions: {
    query: {
      /** Only sessions with all of these words in their messages, tool inputs, end user or metadata, in any order, case and with or without accents; the last word may be the beginning of one. Or the beginning of a session id. The words of a message are found some seconds after it was written. */
      q?: string | undefined;
      status?: 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined;
      /** `true`: only sessions whose last turn failed, whether they have ended or not. */
      hasError?: boolean | undefined;
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      /** true: only sessions that run a draft; false: only others. */
      draft?: boolean | undefined;
      /** Only child sessions of this session. */
      parentSessionId?: string | undefined;
      /** Only forks of this session, which may be deleted. */
      forkedFromSessionId?: string | undefined;
      /** Only sessions for this end user, including child sessions and forks. */
      endUserId?: string | undefined;
      /** Only sessions created at this time or later. */
      since?: string | undefined;
      /** Only sessions created before this time. */
      until?: string | undefined;
      /** `metadata[key]=value`: sessions whose metadata has this value, compared as text. If you give several pairs, put the one that the fewest sessions have first. A page takes longest if many sessions match each of several filters and hardly any matches all. */
      metadata?: Record<string, string> | undefined;
    };
    result: {
      /** At most 10000. */
      count: number;
      /** False: there are that many or more. */
      isExact: boolean;
    };
  };
  /** Export sessions. All sessions that match, as one file. It is read while it is sent: a session that changes meanwhile is in it as it was before or after. `GET /api/v1/sessions/export`, scope `sessions:read` (permission `read`). */
  exportSessions: {
    query: {
      /** `jsonl`: one session per line, as in the list; `csv`: for spreadsheets. Default: `"jsonl"`. */
      format?: 'jsonl' | 'csv' | undefined;
      /** Only sessions with all of these words in their messages, tool inputs, end user or metadata, in any order, case and with or without accents; the last word may be the beginning of one. Or the beginning of a session id. The words of a message are found some seconds after it was written. */
      q?: string | undefined;
      status?: 'idle' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | undefined;
      /** `true`: only sessions whose last turn failed, whether they have ended or not. */
      hasError?: boolean | undefined;
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      /** true: only sessions that run a draft; false: only others. */
      draft?: boolean | undefined;
      /** Only child sessions of this session. */
      parentSessionId?: string | undefined;
      /** Only forks of this session, which may be deleted. */
      forkedFromSessionId?: string | undefined;
      /** Only sessions for this end user, including child sessions and forks. */
      endUserId?: string | undefined;
      /** Only sessions created at this time or later. */
      since?: string | undefined;
      /** Only sessions created before this time. */
      until?: string | undefined;
      /** `metadata[key]=value`: sessions whose metadata has this value, compared as text. If you give several pairs, put the one that the fewest sessions have first. A page takes longest if many sessions match each of several filters and hardly any matches all. */
      metadata?: Record<string, string> | undefined;
      /** Oldest or newest first. Default: `"desc"`. */
      order?: 'asc' | 'desc' | undefined;
    };
    result: ListedSession;
  };
  /** Cancel many sessions. Cancels sessions, as [cancelling one](#cancelSession) does: those with these ids, or the newest open ones that match. Each is cancelled, and recorded in the event log, separately, so some may fail. Repeating the request has no further effect. Continue with `page.nextCursor` while `page.hasMore` is true. `POST /api/v1/sessions/cancel`, scope `sessions:run` (permission `write`). */
  cancelSessions: {
    body: ChangeSessions;
    result: {
      data: ChangedSession[];
      page: PageInfo;
    };
  };
  /** Close many sessions. Closes sessions, as [closing one](#closeSession) does: those with these ids, or the newest open ones that match. Each is closed, and recorded in the event log, separately, so some may fail. Repeating the request has no further effect. Continue with `page.nextCursor` while `page.hasMore` is true. `POST /api/v1/sessions/close`, scope `sessions:run` (permission `write`). */
  closeSessions: {
    body: ChangeSessions;
    result: {
      data: ChangedSession[];
      page: PageInfo;
    };
  };
  /** Get a session. `GET /api/v1/sessions/{sessionId}`, scope `sessions:read` (permission `read`). */
  getSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Get the draft of a session. What a session with `draft: true` runs, as it can be sent again. 404 for other sessions. `GET /api/v1/sessions/{sessionId}/draft`, scope `agents:read` (permission `read`). */
  getSessionDraft: {
    params: {
      sessionId: string;
    };
    result: {
      draft: Draft;
    };
  };
  /** Update a session. Replaces the metadata. `PATCH /api/v1/sessions/{sessionId}`, scope `sessions:run` (permission `write`). */
  updateSession: {
    params: {
      sessionId: string;
    };
    body: UpdateSession;
    result: {
      session: Session;
    };
  };
  /** Delete a session. Permanently deletes an ended session, its child sessions and all their data. Refused with 409 `conflict` while it is open. `DELETE /api/v1/sessions/{sessionId}`, scope `sessions:run` (permission `write`). */
  deleteSession: {
    params: {
      sessionId: string;
    };
    result: {
      sessionId: string;
      deleted: true;
    };
  };
  /** Fork a session. Opens a new session that continues the conversation of this one after one of its turns, with the same agent, environment, budget and metadata unless the request has others. With `input`, its next turn starts immediately. The session itself does not change; it may have ended. With `draft`, the fork runs a definition that is not saved, which also needs the scope `agents:write`. `POST /api/v1/sessions/{sessionId}/fork`, scope `sessions:run` (permission `write`). */
  forkSession: {
    params: {
      sessionId: string;
    };
    body: ForkSession;
    result: {
      session: Session;
    };
  };
  /** Send a message. Starts the next turn, now or after the current one (`onBusy`). `POST /api/v1/sessions/{sessionId}/messages`, scope `sessions:run` (permission `write`). */
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
  /** List messages. The transcript, oldest first by default. `GET /api/v1/sessions/{sessionId}/messages`, scope `sessions:read` (permission `read`). */
  listMessages: {
    params: {
      sessionId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** Oldest or newest first. Messages whose turn has not started are the newest and do not count toward the `limit`. Default: `"asc"`. */
      order?: 'asc' | 'desc' | undefined;
    };
    result: {
      data: Message[];
      page: PageInfo;
    };
  };
  /** List turns. The timeline, newest turn first: what each turn did, when, and what it used. `GET /api/v1/sessions/{sessionId}/turns`, scope `sessions:read` (permission `read`). */
  listTurns: {
    params: {
      sessionId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: SessionTurn[];
      page: PageInfo;
    };
  };
  /** Get an operation. A model call, tool call or compaction in full, to debug it: the prompt, the request as it was sent, the response, and who approved it. Secrets are replaced by their names. `GET /api/v1/sessions/{sessionId}/operations/{operationId}`, scopes `sessions:read` and `agents:read` (permission `read`). */
  getOperation: {
    params: {
      sessionId: string;
      operationId: string;
    };
    result: {
      operation: OperationDetails;
    };
  };
  /** Submit a tool result. For a call of a `client` tool. Submitting the same result again returns 200, a different one 409 `conflict`. `POST /api/v1/sessions/{sessionId}/tool_results`, scope `sessions:run` (permission `write`). */
  sendToolResult: {
    params: {
      sessionId: string;
    };
    body: ToolResult;
    result: {
      session: Session;
    };
  };
  /** Interrupt a session. Stops the current turn. The next queued message starts a new turn; without one, the session is idle. `POST /api/v1/sessions/{sessionId}/interrupt`, scope `sessions:run` (permission `write`). */
  interruptSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Retry a failed turn. Continues the last turn, if it failed, from its last finished operation: tool calls that have a result are not repeated. The turn keeps its number and gets its time limit anew. It runs the newest version of the agent, unless the session has its own. Refused with 409 `turn_not_failed` otherwise, also if a message has started the next turn. With `without`, the turn continues without some files, messages or tools; a session token can name only what is in `error.retryWithout`. `POST /api/v1/sessions/{sessionId}/retry`, scope `sessions:run` (permission `write`). */
  retrySession: {
    params: {
      sessionId: string;
    };
    body: RetrySession;
    result: {
      session: Session;
    };
  };
  /** Compact a session. Replaces the messages of an idle session, except the first, by a summary for the model: a turn without a message. The transcript keeps everything. A session compacts itself before it becomes too long for its model, so this is for a moment that you choose. `POST /api/v1/sessions/{sessionId}/compact`, scope `sessions:run` (permission `write`). */
  compactSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Close a session. Completes the session when its current turn ends. `POST /api/v1/sessions/{sessionId}/close`, scope `sessions:run` (permission `write`). */
  closeSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** Cancel a session. Ends the session and its child sessions now. Calls that have started are aborted. `POST /api/v1/sessions/{sessionId}/cancel`, scope `sessions:run` (permission `write`). */
  cancelSession: {
    params: {
      sessionId: string;
    };
    result: {
      session: Session;
    };
  };
  /** List chunks. The journal after a cursor, oldest first. `limit` counts chunks; a page of long chunks has fewer. `GET /api/v1/sessions/{sessionId}/chunks`, scope `sessions:read` (permission `read`). */
  listChunks: {
    params: {
      sessionId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `100`. */
      limit?: number | undefined;
      /** Only chunks after this cursor, `turn_<n>:seq_<n>`; without it, from the beginning. */
      cursor?: string | undefined;
      /** Only chunks of these types, comma separated. Cursors stay valid. */
      types?: string | undefined;
    };
    result: {
      data: Envelope[];
      page: PageInfo;
    };
  };
  /** Stream a session. Follows the journal live with Server-Sent Events. Resumes after `cursor` or `Last-Event-ID`; 204 if nothing can follow. `GET /api/v1/sessions/{sessionId}/stream`, scope `sessions:read` (permission `read`). */
  streamSession: {
    params: {
      sessionId: string;
    };
    query: {
      /** Only chunks after this cursor, `turn_<n>:seq_<n>`; without it, from the beginning. */
      cursor?: string | undefined;
      /** Only chunks of these types, comma separated. Cursors stay valid. */
      types?: string | undefined;
    };
    result: Envelope;
  };
  /** Share a session. Creates a link by which anyone can read the conversation of this session, without signing in, until the link expires or is deleted. It shows messages and their files; tool calls only with `includesTools`; never metadata, the end user, the agent, usage or costs. The link is in this response only. `POST /api/v1/sessions/{sessionId}/shares`, scope `sessions:run` (permission `write`). */
  createSessionShare: {
    params: {
      sessionId: string;
    };
    body: CreateSessionShare;
    result: CreatedSessionShare;
  };
  /** List the share links of a session. Links that have not expired, newest first. `GET /api/v1/sessions/{sessionId}/shares`, scope `sessions:read` (permission `read`). */
  listSessionShares: {
    params: {
      sessionId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: SessionShare[];
      page: PageInfo;
    };
  };
  /** Revoke a share link. The link is invalid from then on, also for pages that are open. `DELETE /api/v1/sessions/{sessionId}/shares/{shareId}`, scope `sessions:run` (permission `write`). */
  deleteSessionShare: {
    params: {
      sessionId: string;
      shareId: string;
    };
    result: {
      shareId: string;
      deleted: true;
    };
  };
  /** Create a token for a session. For the page of an end user: it reaches this session only. The token is in this response only, and it can do nothing that the key which creates it can not. `POST /api/v1/sessions/{sessionId}/tokens`, scope `sessions:run` (permission `write`). */
  createSessionToken: {
    params: {
      sessionId: string;
    };
    body: CreateSessionToken;
    result: SessionToken;
  };
  /** Create a token for an end user. It reaches the sessions that this end user has with this agent in this environment; with the scope `open` it also opens them. The token is in this response only, and it can do nothing that the key which creates it can not. `POST /api/v1/session_tokens`, scope `sessions:run` (permission `write`). */
  createEndUserToken: {
    body: CreateEndUserToken;
    result: SessionToken;
  };
  /** Get an end user. Whether there are sessions for an end user, and how far its erasure is. Percent-encode the id. `GET /api/v1/end_users/{endUserId}`, scope `organization:manage` (permission `admin`). */
  getEndUser: {
    params: {
      /** Your own id of the user. Upper and lower case differ. */
      endUserId: string;
    };
    result: {
      endUser: EndUserDetails;
    };
  };
  /** Erase an end user. Starts to delete all sessions, forks, child sessions, files and schedules of an end user, with everything that belongs to them. Open sessions are cancelled first. Until it has finished, new sessions for the end user are refused with 409 `conflict`. While it is running, this route only shows its progress. `DELETE /api/v1/end_users/{endUserId}`, scope `organization:manage` (permission `admin`). */
  eraseEndUser: {
    params: {
      /** Your own id of the user. Upper and lower case differ. */
      endUserId: string;
    };
    result: {
      endUser: EndUserDetails;
    };
  };
  /** Upload a file. The body is the content: 1 byte to 32 MiB, of any type. Or it is `multipart/form-data` with one file, whose part has the name and the type. A file that no session or schedule names is deleted after a time that the operator sets, 30 days by default. `POST /api/v1/files`, scope `sessions:run` (permission `write`). */
  uploadFile: {
    query: {
      /** The name of an environment, such as `production`. */
      environment: string;
    };
    result: {
      file: StoredFile;
    };
  };
  /** List files. Newest first. `GET /api/v1/files`, scope `sessions:read` (permission `read`). */
  listFiles: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
    };
    result: {
      data: StoredFile[];
      page: PageInfo;
    };
  };
  /** Get a file. What is known about it, without its content. `GET /api/v1/files/{fileId}`, scope `sessions:read` (permission `read`). */
  getFile: {
    params: {
      fileId: string;
    };
    result: {
      file: StoredFile;
    };
  };
  /** Get the content of a file. The bytes, as a download that no browser runs. One range (`Range: bytes=0-999`) is served with 206; `ETag` is the SHA-256, for `If-None-Match` and `If-Range`. `GET /api/v1/files/{fileId}/content`, scope `sessions:read` (permission `read`). */
  getFileContent: {
    params: {
      fileId: string;
    };
    result: FileContent;
  };
  /** Delete a file. Permanently. Messages that name the file keep the part without its content, and a model gets a note that the file was deleted. `DELETE /api/v1/files/{fileId}`, scope `sessions:run` (permission `write`). */
  deleteFile: {
    params: {
      fileId: string;
    };
    result: {
      fileId: string;
      deleted: true;
    };
  };
  /** List approvals. Approvals of all sessions, oldest first by default. `GET /api/v1/approvals`, scope `sessions:read` (permission `read`). */
  listApprovals: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** By time of request: oldest or newest first. Default: `"asc"`. */
      order?: 'asc' | 'desc' | undefined;
      status?: 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled' | undefined;
      /** Only for calls of this agent, also in child sessions that it runs. */
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      sessionId?: string | undefined;
      /** The messages before the call as well. Not for session tokens. */
      include?: 'context' | undefined;
    };
    result: {
      data: Approval[];
      page: PageInfo;
    };
  };
  /** Get an approval. `GET /api/v1/approvals/{operationId}`, scope `sessions:read` (permission `read`). */
  getApproval: {
    params: {
      operationId: string;
    };
    query: {
      /** The messages before the call as well. Not for session tokens. */
      include?: 'context' | undefined;
    };
    result: {
      approval: Approval;
    };
  };
  /** Resolve an approval. Approves or denies the call. The first decision wins, unless the tool asks for several approvers: then the call runs once all of them have approved the same input, and one denial is final. `POST /api/v1/approvals/{operationId}/resolve`, scope `approvals:decide` (permission `write`). */
  resolveApproval: {
    params: {
      operationId: string;
    };
    body: ResolveApproval;
    result: {
      approval: Approval;
    };
  };
  /** Resolve several approvals. Makes the same decision on up to 100 approvals. Each is decided as it would be alone: one that is refused does not affect the others, and each counts as a request in rate limits. The response has a result for each, in the order of the request. With an `Idempotency-Key`, a repeated request continues where an interrupted one stopped. `POST /api/v1/approvals/resolve`, scope `approvals:decide` (permission `write`). */
  resolveApprovals: {
    body: ResolveApprovals;
    result: {
      results: ApprovalOutcome[];
    };
  };
  /** Claim a step. Waits for a step on a queue and claims it. `workerTurn` is null if none was offered within `waitSeconds`. `POST /api/v1/worker_turns/claim`, scope `workers:run` (permission `write`). */
  claimWorkerTurn: {
    body: ClaimWorkerTurn;
    result: {
      workerTurn: WorkerTurn | null;
    };
  };
  /** Send a heartbeat. Renews the claim on a step. Without heartbeats the claim expires and the step is offered to other workers. `POST /api/v1/worker_turns/{workerTurnId}/heartbeat`, scope `workers:run` (permission `write`). */
  heartbeatWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    result: {
      leaseExpiresAt: string;
    };
  };
  /** Append text. Streams text of the response. It is in the journal when this returns. `POST /api/v1/worker_turns/{workerTurnId}/append`, scope `workers:run` (permission `write`). */
  appendToWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    body: AppendToWorkerTurn;
    result: {
      /** The position of a chunk in its session. */
      cursor: string;
    };
  };
  /** Complete a step. Submits the response: with `toolCalls` the turn continues, without them it ends. If the step has `pendingCalls`, submits their results instead. `POST /api/v1/worker_turns/{workerTurnId}/complete`, scope `workers:run` (permission `write`). */
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
  /** Release a step. The step is offered to other workers immediately, and its appended text is discarded. `POST /api/v1/worker_turns/{workerTurnId}/release`, scope `workers:run` (permission `write`). */
  releaseWorkerTurn: {
    params: {
      workerTurnId: string;
    };
    result: {
      workerTurnId: string;
      released: true;
    };
  };
  /** Create a schedule. Opens a session at each of its times. `POST /api/v1/schedules`, scope `schedules:write` (permission `write`). */
  createSchedule: {
    body: CreateSchedule;
    result: {
      schedule: Schedule;
    };
  };
  /** List schedules. Newest first. `GET /api/v1/schedules`, scope `agents:read` (permission `read`). */
  listSchedules: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      status?: ScheduleStatus | undefined;
    };
    result: {
      data: Schedule[];
      page: PageInfo;
    };
  };
  /** Get a schedule. `GET /api/v1/schedules/{scheduleId}`, scope `agents:read` (permission `read`). */
  getSchedule: {
    params: {
      scheduleId: string;
    };
    result: {
      schedule: Schedule;
    };
  };
  /** Update a schedule. Also pauses and resumes it. Sessions that it opened do not change. `PATCH /api/v1/schedules/{scheduleId}`, scope `schedules:write` (permission `write`). */
  updateSchedule: {
    params: {
      scheduleId: string;
    };
    body: UpdateSchedule;
    result: {
      schedule: Schedule;
    };
  };
  /** Delete a schedule. Also deletes its runs. Sessions that it opened remain. `DELETE /api/v1/schedules/{scheduleId}`, scope `schedules:write` (permission `write`). */
  deleteSchedule: {
    params: {
      scheduleId: string;
    };
    result: {
      scheduleId: string;
      deleted: true;
    };
  };
  /** Run a schedule now. Opens one session as at one of its times, which do not change; a paused schedule can be run as well. The run is listed as `manual`. If the session is refused, so is the request, with the same error, and there is no run. `POST /api/v1/schedules/{scheduleId}/run`, scope `schedules:write` (permission `write`). */
  runSchedule: {
    params: {
      scheduleId: string;
    };
    result: {
      run: ScheduleRun;
    };
  };
  /** Preview times. The next times of a cron expression, of a schedule that exists or of one that does not yet. `GET /api/v1/schedules/preview`, scope `agents:read` (permission `read`). */
  previewSchedule: {
    query: {
      /** As in a schedule. */
      cron: string;
      /** As in a schedule. Default: `"UTC"`. */
      timezone?: string | undefined;
      /** How many times. Default: `5`. */
      count?: number | undefined;
    };
    result: {
      preview: SchedulePreview;
    };
  };
  /** List runs of a schedule. Newest first. `GET /api/v1/schedules/{scheduleId}/runs`, scope `agents:read` (permission `read`). */
  listScheduleRuns: {
    params: {
      scheduleId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      status?: ScheduleRunStatus | undefined;
      /** `true`: only runs that opened no session, or whose session failed in its last turn. A page is found among a thousand runs, so it can have fewer than `limit`, or none, although there are more. */
      hasError?: boolean | undefined;
    };
    result: {
      data: ScheduleRun[];
      page: PageInfo;
    };
  };
  /** List webhook subscriptions. Subscriptions of all environments, newest first. `GET /api/v1/webhook_subscriptions`, scope `agents:read` (permission `read`). */
  listWebhookSubscriptions: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
    };
    result: {
      data: WebhookSubscription[];
      page: PageInfo;
    };
  };
  /** Create a webhook subscription. One per environment. The signing secret is in this response only. `POST /api/v1/webhook_subscriptions`, scope `webhooks:write` (permission `write`). */
  createWebhookSubscription: {
    body: CreateWebhookSubscription;
    result: CreatedWebhookSubscription;
  };
  /** Get a webhook subscription. `GET /api/v1/webhook_subscriptions/{env}`, scope `agents:read` (permission `read`). */
  getWebhookSubscription: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    result: {
      webhookSubscription: WebhookSubscription;
    };
  };
  /** Update a webhook subscription. Changes the URL or chunk types, or pauses and resumes deliveries. `PATCH /api/v1/webhook_subscriptions/{env}`, scope `webhooks:write` (permission `write`). */
  updateWebhookSubscription: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    body: UpdateWebhookSubscription;
    result: {
      webhookSubscription: WebhookSubscription;
    };
  };
  /** Delete a webhook subscription. Cancels its pending deliveries. `DELETE /api/v1/webhook_subscriptions/{env}`, scope `webhooks:write` (permission `write`). */
  deleteWebhookSubscription: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    result: {
      webhookSubscriptionId: string;
      deleted: true;
    };
  };
  /** Rotate the signing secret. Deliveries are signed with both secrets until the grace period ends. The new secret is in this response only. `POST /api/v1/webhook_subscriptions/{env}/rotate_secret`, scope `webhooks:write` (permission `write`). */
  rotateWebhookSecret: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    body: RotateSecret;
    result: RotatedSecret;
  };
  /** Send a test delivery. Sends one signed envelope of the made-up session `ses_test` now, even if the subscription is paused, and returns the attempt. `POST /api/v1/webhook_subscriptions/{env}/test`, scope `webhooks:write` (permission `write`). */
  testWebhookSubscription: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    result: {
      attempt: WebhookAttempt;
    };
  };
  /** List received webhooks. Requests to the built-in test receiver (`signalbox:test-receiver`), newest first. The last 100 are kept. `GET /api/v1/webhook_subscriptions/{env}/received`, scope `sessions:read` (permission `read`). */
  listReceivedWebhooks: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: ReceivedWebhook[];
      page: PageInfo;
    };
  };
  /** Recover deliveries. Sends chunks again from the journal: of all sessions since a time, or of one session after a cursor. Runs in the background. `POST /api/v1/webhook_subscriptions/{env}/recover`, scope `webhooks:write` (permission `write`). */
  recoverDeliveries: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    body: RecoverDeliveries;
    result: {
      webhookSubscription: WebhookSubscription;
    };
  };
  /** List deliveries. Newest first. `GET /api/v1/webhook_subscriptions/{env}/deliveries`, scope `sessions:read` (permission `read`). */
  listDeliveries: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      status?: 'pending' | 'succeeded' | 'exhausted' | 'cancelled' | undefined;
      sessionId?: string | undefined;
    };
    result: {
      data: WebhookDelivery[];
      page: PageInfo;
    };
  };
  /** Get a delivery. Includes its last 50 attempts and the request body. `GET /api/v1/webhook_subscriptions/{env}/deliveries/{deliveryId}`, scope `sessions:read` (permission `read`). */
  getDelivery: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
      deliveryId: string;
    };
    result: {
      webhookDelivery: WebhookDeliveryWithAttempts;
    };
  };
  /** Resend a delivery. Sends the same ID and bytes again. A pending delivery is retried now. `POST /api/v1/webhook_subscriptions/{env}/deliveries/{deliveryId}/resend`, scope `webhooks:write` (permission `write`). */
  resendDelivery: {
    params: {
      /** The name of an environment, such as `production`. */
      env: string;
      deliveryId: string;
    };
    result: {
      webhookDelivery: WebhookDelivery;
    };
  };
  /** List destinations. Newest first. `GET /api/v1/destinations`, scope `agents:read` (permission `read`). */
  listDestinations: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
    };
    result: {
      data: Destination[];
      page: PageInfo;
    };
  };
  /** Create a destination. Records of the event log are sent to it from now on. At most 100 per organization. The signing secret is in this response only. `POST /api/v1/destinations`, scopes `webhooks:write` and `sessions:read` and `events:read` (permission `write`). */
  createDestination: {
    body: CreateDestination;
    result: CreatedDestination;
  };
  /** Get a destination. `GET /api/v1/destinations/{destinationId}`, scope `agents:read` (permission `read`). */
  getDestination: {
    params: {
      destinationId: string;
    };
    result: {
      destination: Destination;
    };
  };
  /** Update a destination. Changes what it receives and where, or pauses and resumes it. What was recorded while it was paused is then sent. `PATCH /api/v1/destinations/{destinationId}`, scopes `webhooks:write` and `sessions:read` and `events:read` (permission `write`). */
  updateDestination: {
    params: {
      destinationId: string;
    };
    body: UpdateDestination;
    result: {
      destination: Destination;
    };
  };
  /** Delete a destination. Nothing more is sent to it. `DELETE /api/v1/destinations/{destinationId}`, scope `webhooks:write` (permission `write`). */
  deleteDestination: {
    params: {
      destinationId: string;
    };
    result: {
      destinationId: string;
      deleted: true;
    };
  };
  /** Rotate the signing secret of a destination. Deliveries are signed with both secrets until the grace period ends. The new secret is in this response only. `POST /api/v1/destinations/{destinationId}/rotate_secret`, scopes `webhooks:write` and `sessions:read` and `events:read` (permission `write`). */
  rotateDestinationSecret: {
    params: {
      destinationId: string;
    };
    body: RotateSecret;
    result: RotatedSecret;
  };
  /** Send a test to a destination. Sends one signed delivery with a made-up record now, even if the destination is paused, and returns the attempt. `POST /api/v1/destinations/{destinationId}/test`, scopes `webhooks:write` and `sessions:read` and `events:read` (permission `write`). */
  testDestination: {
    params: {
      destinationId: string;
    };
    result: {
      attempt: WebhookAttempt;
    };
  };
  /** Send records again to a destination. Sends all records that it receives from a sequence number or a time on, in new deliveries; those that wait are cancelled. Runs in the background. `POST /api/v1/destinations/{destinationId}/recover`, scopes `webhooks:write` and `sessions:read` and `events:read` (permission `write`). */
  recoverDestination: {
    params: {
      destinationId: string;
    };
    body: RecoverDestination;
    result: {
      destination: Destination;
    };
  };
  /** List deliveries to a destination. Newest first. `GET /api/v1/destinations/{destinationId}/deliveries`, scope `events:read` (permission `read`). */
  listDestinationDeliveries: {
    params: {
      destinationId: string;
    };
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      status?: 'pending' | 'succeeded' | 'exhausted' | 'cancelled' | undefined;
    };
    result: {
      data: DestinationDelivery[];
      page: PageInfo;
    };
  };
  /** Get a delivery to a destination. Includes its last 50 attempts and the request body. `GET /api/v1/destinations/{destinationId}/deliveries/{deliveryId}`, scope `events:read` (permission `read`). */
  getDestinationDelivery: {
    params: {
      destinationId: string;
      deliveryId: string;
    };
    result: {
      destinationDelivery: DestinationDeliveryWithAttempts;
    };
  };
  /** Get the overview. Counts for the organization or for one environment. `GET /api/v1/overview`, scope `usage:read` (permission `read`). */
  getOverview: {
    query: {
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
    };
    result: {
      overview: Overview;
    };
  };
  /** Get usage. Tokens, model calls and cost of whole UTC days. `GET /api/v1/usage`, scope `usage:read` (permission `read`). */
  getUsage: {
    query: {
      /** At most 366 days before `to`; default: 30 days before. */
      from?: string | undefined;
      /** Default: now. */
      to?: string | undefined;
      /** Default: `"day"`. */
      groupBy?: 'day' | 'agent' | 'environment' | 'model' | 'endUser' | 'apiKey' | undefined;
      /** Also divides each day; only with `groupBy=day`. */
      splitBy?: 'agent' | 'environment' | 'model' | 'endUser' | 'apiKey' | undefined;
      /** Only the usage of the versions of this agent, or of its drafts with `draft=true`; not with `endUser` in `groupBy` or `splitBy`. */
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      /** true: only the usage of sessions that run a draft; false: only of others. Not with `endUser` in `groupBy` or `splitBy`. */
      draft?: boolean | undefined;
    };
    result: UsageReport;
  };
  /** Get analytics. Sessions, turns, errors, latencies, deliveries and cost over time, and in the period before. What drafts do is not counted. Counts arrive some seconds late. `GET /api/v1/analytics`, scope `usage:read` (permission `read`). */
  getAnalytics: {
    query: {
      /** Default: 24 hours before `to`. */
      from?: string | undefined;
      /** Default: now. */
      to?: string | undefined;
      /** The length of a point. By the minute: the last 2 hours. By the hour: at most 31 days, of the last 62. By the day: at most 366 days. Default: the finest of at most 60 points, if available. */
      step?: 'minute' | 'hour' | 'day' | undefined;
      /** Also lists the sums of each agent, environment or model. */
      groupBy?: 'agent' | 'environment' | 'model' | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      /** Only what is of this agent; webhooks are of no agent. */
      agentId?: string | undefined;
    };
    result: Analytics;
  };
  /** List budgets. With what was spent in the current period. `GET /api/v1/budgets`, scope `usage:read` (permission `read`). */
  listBudgets: {
    query: {
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      /** Only budgets of this agent. */
      agentId?: string | undefined;
    };
    result: {
      /** By name. There are at most 100. */
      data: OrganizationBudget[];
    };
  };
  /** Set a budget. Creates or replaces it. What it is for (`period`, `environment`, `agentId`, `keyId`) does not change: delete it and create another. `PUT /api/v1/budgets/{budgetName}`, scope `organization:manage` (permission `admin`). */
  setBudget: {
    params: {
      /** Your name for the budget, such as `monthly`. */
      budgetName: string;
    };
    body: SetBudget;
    result: {
      budget: OrganizationBudget;
    };
  };
  /** Delete a budget. With its alerts. Turns that it stopped can begin at once. `DELETE /api/v1/budgets/{budgetName}`, scope `organization:manage` (permission `admin`). */
  deleteBudget: {
    params: {
      /** Your name for the budget, such as `monthly`. */
      budgetName: string;
    };
    result: {
      name: string;
      deleted: true;
    };
  };
  /** List members. Newest first. `GET /api/v1/members`, scope `organization:manage` (permission `admin`). */
  listMembers: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: Member[];
      page: PageInfo;
    };
  };
  /** Change the role of a member, and what they can decide. Only an owner can add or change owners. An unknown agent or environment in `canDecide` is refused. The member keeps `canDecide` with every other role, and needs `canDecide: null` to become admin or owner. `PATCH /api/v1/members/{userId}`, scope `organization:manage` (permission `admin`). */
  updateMember: {
    params: {
      userId: string;
    };
    body: UpdateMember;
    result: {
      member: Member;
    };
  };
  /** Remove a member. The account of a user who is in no other organization is deleted. `DELETE /api/v1/members/{userId}`, scope `organization:manage` (permission `admin`). */
  removeMember: {
    params: {
      userId: string;
    };
    result: {
      userId: string;
      deleted: true;
    };
  };
  /** Create a password reset link. Only for users who are in no other organization. The link is valid for 24 hours and is in this response only. `POST /api/v1/members/{userId}/password_reset`, scope `organization:manage` (permission `admin`). */
  resetPassword: {
    params: {
      userId: string;
    };
    result: PasswordReset;
  };
  /** List open invitations. Newest first. `GET /api/v1/invitations`, scope `organization:manage` (permission `admin`). */
  listInvitations: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `20`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
    };
    result: {
      data: Invitation[];
      page: PageInfo;
    };
  };
  /** Create an invitation. The link can be used once, within 7 days, and is in this response only. `POST /api/v1/invitations`, scope `organization:manage` (permission `admin`). */
  createInvitation: {
    body: CreateInvitation;
    result: CreatedInvitation;
  };
  /** Withdraw an invitation. `DELETE /api/v1/invitations/{invitationId}`, scope `organization:manage` (permission `admin`). */
  deleteInvitation: {
    params: {
      invitationId: string;
    };
    result: {
      invitationId: string;
      deleted: true;
    };
  };
  /** Get the organization. `GET /api/v1/organization`, any key. */
  getOrganization: {
    result: {
      organization: Organization;
    };
  };
  /** Set the allowed origins. Replaces the list of web pages that session tokens can be used from: origins, or `https://*.` and a domain for all of its subdomains. A page of another origin is refused with 403 `origin_not_allowed`. Programs that are not web pages send no `Origin`, so the list does not apply to them. `PUT /api/v1/organization`, scope `organization:manage` (permission `admin`). */
  setOrganization: {
    body: SetOrganization;
    result: {
      organization: Organization;
    };
  };
  /** Rename the organization. `PATCH /api/v1/organization`, scope `organization:manage` (permission `admin`). */
  updateOrganization: {
    body: UpdateOrganization;
    result: {
      organization: Organization;
    };
  };
  /** List events. Newest first by default. With `order=asc` and `wait`, waits for new records. `GET /api/v1/events`, scope `events:read` (permission `read`). */
  listEvents: {
    query: {
      /** Maximum number of items. A page of long items has fewer: about 4 MiB. Default: `100`. */
      limit?: number | undefined;
      /** The `page.nextCursor` of the previous page. */
      cursor?: string | undefined;
      /** Newest or oldest first. Default: `"desc"`. */
      order?: 'desc' | 'asc' | undefined;
      /** Only records of this type, or of these types, comma separated: `approval.*` stands for all types that begin with `approval.`, `*` for all. A type that does not exist is refused, and so is a pattern that matches none. With one filter, or with a type and an environment, a page takes the same time regardless of the number of records. With others, it takes longest if many records match each filter and none matches all. */
      type?: string | undefined;
      actorId?: string | undefined;
      resourceId?: string | undefined;
      sessionId?: string | undefined;
      /** Only records that have this `agentId`; records of earlier releases have none. */
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      since?: string | undefined;
      until?: string | undefined;
      /** Only records after this one of the organization. */
      afterSequence?: number | undefined;
      /** With `order=asc`: how many seconds to wait for a record if there is none yet. Default: `0`. */
      wait?: number | undefined;
    };
    result: {
      data: Event[];
      page: PageInfo;
    };
  };
  /** Export events. The event log as one file, oldest first, up to the newest record when the export starts. `GET /api/v1/events/export`, scope `events:read` (permission `read`). */
  exportEvents: {
    query: {
      /** `jsonl`: one record per line, as in the list, for verification; `csv`: for spreadsheets. Default: `"jsonl"`. */
      format?: 'jsonl' | 'csv' | undefined;
      /** Only records of this type, or of these types, comma separated: `approval.*` stands for all types that begin with `approval.`, `*` for all. A type that does not exist is refused, and so is a pattern that matches none. With one filter, or with a type and an environment, a page takes the same time regardless of the number of records. With others, it takes longest if many records match each filter and none matches all. */
      type?: string | undefined;
      actorId?: string | undefined;
      resourceId?: string | undefined;
      sessionId?: string | undefined;
      /** Only records that have this `agentId`; records of earlier releases have none. */
      agentId?: string | undefined;
      /** The name of an environment, such as `production`. */
      environment?: string | undefined;
      since?: string | undefined;
      until?: string | undefined;
      /** Only records after this one of the organization. */
      afterSequence?: number | undefined;
    };
    result: Event;
  };
  /** Get an event. `GET /api/v1/events/{eventId}`, scope `events:read` (permission `read`). */
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
  deleteOldSecret: { method: 'DELETE', path: '/api_keys/{keyId}/old_secret' },
  deleteKey: { method: 'DELETE', path: '/api_keys/{keyId}' },
  createAgent: { method: 'POST', path: '/agents' },
  listAgents: { method: 'GET', path: '/agents' },
  getAgent: { method: 'GET', path: '/agents/{agentId}' },
  listAgentVersions: { method: 'GET', path: '/agents/{agentId}/versions' },
  updateAgent: { method: 'PATCH', path: '/agents/{agentId}' },
  archiveAgent: { method: 'DELETE', path: '/agents/{agentId}' },
  listModels: { method: 'GET', path: '/environments/{env}/models' },
  testTool: { method: 'POST', path: '/environments/{env}/tool_tests' },
  listMcpTools: { method: 'POST', path: '/environments/{env}/mcp_tool_lists' },
  listEnvironments: { method: 'GET', path: '/environments' },
  createEnvironment: { method: 'POST', path: '/environments' },
  updateEnvironment: { method: 'PATCH', path: '/environments/{env}' },
  deleteEnvironment: { method: 'DELETE', path: '/environments/{env}' },
  streamEnvironment: { method: 'GET', path: '/environments/{env}/stream' },
  listSecrets: { method: 'GET', path: '/environments/{env}/secrets' },
  setSecret: { method: 'PUT', path: '/environments/{env}/secrets/{name}' },
  deleteSecret: { method: 'DELETE', path: '/environments/{env}/secrets/{name}' },
  openSession: { method: 'POST', path: '/sessions' },
  listSessions: { method: 'GET', path: '/sessions' },
  countSessions: { method: 'GET', path: '/sessions/count' },
  exportSessions: { method: 'GET', path: '/sessions/export' },
  cancelSessions: { method: 'POST', path: '/sessions/cancel' },
  closeSessions: { method: 'POST', path: '/sessions/close' },
  getSession: { method: 'GET', path: '/sessions/{sessionId}' },
  getSessionDraft: { method: 'GET', path: '/sessions/{sessionId}/draft' },
  updateSession: { method: 'PATCH', path: '/sessions/{sessionId}' },
  deleteSession: { method: 'DELETE', path: '/sessions/{sessionId}' },
  forkSession: { method: 'POST', path: '/sessions/{sessionId}/fork' },
  sendMessage: { method: 'POST', path: '/sessions/{sessionId}/messages' },
  listMessages: { method: 'GET', path: '/sessions/{sessionId}/messages' },
  listTurns: { method: 'GET', path: '/sessions/{sessionId}/turns' },
  getOperation: { method: 'GET', path: '/sessions/{sessionId}/operations/{operationId}' },
  sendToolResult: { method: 'POST', path: '/sessions/{sessionId}/tool_results' },
  interruptSession: { method: 'POST', path: '/sessions/{sessionId}/interrupt' },
  retrySession: { method: 'POST', path: '/sessions/{sessionId}/retry' },
  compactSession: { method: 'POST', path: '/sessions/{sessionId}/compact' },
  closeSession: { method: 'POST', path: '/sessions/{sessionId}/close' },
  cancelSession: { method: 'POST', path: '/sessions/{sessionId}/cancel' },
  listChunks: { method: 'GET', path: '/sessions/{sessionId}/chunks' },
  streamSession: { method: 'GET', path: '/sessions/{sessionId}/stream' },
  createSessionShare: { method: 'POST', path: '/sessions/{sessionId}/shares' },
  listSessionShares: { method: 'GET', path: '/sessions/{sessionId}/shares' },
  deleteSessionShare: { method: 'DELETE', path: '/sessions/{sessionId}/shares/{shareId}' },
  createSessionToken: { method: 'POST', path: '/sessions/{sessionId}/tokens' },
  createEndUserToken: { method: 'POST', path: '/session_tokens' },
  getEndUser: { method: 'GET', path: '/end_users/{endUserId}' },
  eraseEndUser: { method: 'DELETE', path: '/end_users/{endUserId}' },
  uploadFile: { method: 'POST', path: '/files' },
  listFiles: { method: 'GET', path: '/files' },
  getFile: { method: 'GET', path: '/files/{fileId}' },
  getFileContent: { method: 'GET', path: '/files/{fileId}/content' },
  deleteFile: { method: 'DELETE', path: '/files/{fileId}' },
  listApprovals: { method: 'GET', path: '/approvals' },
  getApproval: { method: 'GET', path: '/approvals/{operationId}' },
  resolveApproval: { method: 'POST', path: '/approvals/{operationId}/resolve' },
  resolveApprovals: { method: 'POST', path: '/approvals/resolve' },
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
  runSchedule: { method: 'POST', path: '/schedules/{scheduleId}/run' },
  previewSchedule: { method: 'GET', path: '/schedules/preview' },
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
  listDestinations: { method: 'GET', path: '/destinations' },
  createDestination: { method: 'POST', path: '/destinations' },
  getDestination: { method: 'GET', path: '/destinations/{destinationId}' },
  updateDestination: { method: 'PATCH', path: '/destinations/{destinationId}' },
  deleteDestination: { method: 'DELETE', path: '/destinations/{destinationId}' },
  rotateDestinationSecret: { method: 'POST', path: '/destinations/{destinationId}/rotate_secret' },
  testDestination: { method: 'POST', path: '/destinations/{destinationId}/test' },
  recoverDestination: { method: 'POST', path: '/destinations/{destinationId}/recover' },
  listDestinationDeliveries: { method: 'GET', path: '/destinations/{destinationId}/deliveries' },
  getDestinationDelivery: { method: 'GET', path: '/destinations/{destinationId}/deliveries/{deliveryId}' },
  getOverview: { method: 'GET', path: '/overview' },
  getUsage: { method: 'GET', path: '/usage' },
  getAnalytics: { method: 'GET', path: '/analytics' },
  listBudgets: { method: 'GET', path: '/budgets' },
  setBudget: { method: 'PUT', path: '/budgets/{budgetName}' },
  deleteBudget: { method: 'DELETE', path: '/budgets/{budgetName}' },
  listMembers: { method: 'GET', path: '/members' },
  updateMember: { method: 'PATCH', path: '/members/{userId}' },
  removeMember: { method: 'DELETE', path: '/members/{userId}' },
  resetPassword: { method: 'POST', path: '/members/{userId}/password_reset' },
  listInvitations: { method: 'GET', path: '/invitations' },
  createInvitation: { method: 'POST', path: '/invitations' },
  deleteInvitation: { method: 'DELETE', path: '/invitations/{invitationId}' },
  getOrganization: { method: 'GET', path: '/organization' },
  setOrganization: { method: 'PUT', path: '/organization' },
  updateOrganization: { method: 'PATCH', path: '/organization' },
  listEvents: { method: 'GET', path: '/events' },
  exportEvents: { method: 'GET', path: '/events/export' },
  getEvent: { method: 'GET', path: '/events/{eventId}' },
} as const satisfies Record<keyof Operations, { method: string; path: string }>;

/** Headers of a webhook delivery. */
export const deliveryHeaders = {
  "timestamp": "x-service-timestamp",
  "signature": "x-service-signature",
  "deliveryId": "x-service-delivery-id",
  "attempt": "x-service-attempt",
  "secretVersion": "x-service-secret-version",
  "previousCursor": "x-service-previous-cursor"
} as const;

/** The Standard Webhooks headers of a delivery. */
export const standardHeaders = {
  "id": "webhook-id",
  "timestamp": "webhook-timestamp",
  "signature": "webhook-signature"
} as const;

/** What a signing secret starts with; the base64 of 32 bytes follows. */
export const signingSecretPrefix = 'whsec_';

/** How far a delivery's timestamp may be from the receiver's clock, in seconds, either way. */
export const replayWindowSeconds = 300;
