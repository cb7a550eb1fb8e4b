/**
 * The HTTP interface as one table. From it come the routes that the server runs, the permission check, the validation,
 * the OpenAPI document and the types of the client. Paths stand below `/api/v1`.
 */
import { Agent, AgentPage, AgentParams, CreateAgent, ListAgents, ListAgentVersions, UpdateAgent } from './agents.ts';
import { Approval, ApprovalPage, ApprovalParams, ListApprovals, ResolveApproval } from './approvals.ts';
import { Envelope, EnvelopePage, ListChunks, StreamQuery } from './chunks.ts';
import {
  CreateEnvironment,
  Environment,
  EnvironmentPage,
  EnvironmentParams,
  EnvironmentSecret,
  ListEnvironments,
  SecretPage,
  SecretParams,
  SetSecret,
} from './environments.ts';
import type { ErrorCode } from './errors.ts';
import { Event, EventPage, EventParams, ExportEvents, ListEvents } from './events.ts';
import {
  ApiKey,
  ApiKeyWithSecret,
  CreateKey,
  KeyPage,
  KeyParams,
  ListKeys,
  Me,
  type Permission,
  UpdateKey,
} from './keys.ts';
import {
  CreateSchedule,
  ListScheduleRuns,
  ListSchedules,
  Schedule,
  SchedulePage,
  ScheduleParams,
  ScheduleRunPage,
  UpdateSchedule,
} from './schedules.ts';
import { Id, type IdPrefix, type Static, type TSchema, Type } from './schema.ts';
import {
  ListMessages,
  ListSessions,
  MessagePage,
  OpenSession,
  SendMessage,
  Session,
  SessionPage,
  SessionParams,
  ToolResult,
  UpdateSession,
} from './sessions.ts';
import { GetUsage, UsageReport } from './usage.ts';
import {
  CreatedWebhookSubscription,
  CreateWebhookSubscription,
  DeliveryParams,
  ListDeliveries,
  ListWebhookSubscriptions,
  RotatedSecret,
  RotateSecret,
  SubscriptionParams,
  UpdateWebhookSubscription,
  WebhookDeliveryPage,
  WebhookDeliveryWithAttempts,
  WebhookSubscription,
  WebhookSubscriptionPage,
} from './webhooks.ts';
import {
  AppendToWorkerTurn,
  ClaimedWorkerTurn,
  ClaimWorkerTurn,
  CompleteWorkerTurn,
  WorkerTurnCursor,
  WorkerTurnLease,
  WorkerTurnParams,
} from './workers.ts';

/** One operation of the interface. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`, with `{name}` for parameters. */
  readonly path: string;
  /** What the caller's key must hold at least. */
  readonly permission: Permission;
  /** The heading under which it stands in the reference. */
  readonly tag: string;
  readonly summary: string;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Of the answer when all went well. */
  readonly status: 200 | 201 | 202;
  readonly result: TSchema;
  /**
   * `sse`: the answer is a stream of Server-Sent Events, each with a `result`. `export`: a file of any length, a `result` a
   * line, or the same as CSV.
   */
  readonly stream?: 'sse' | 'export';
  /** Codes particular to this route, beside those that every route can answer with. */
  readonly errors?: readonly ErrorCode[];
  /**
   * Sent again it does no more by itself, and no answer is stored for its `Idempotency-Key`: a long poll, whose transaction
   * would stay open, or what is called many times a second.
   */
  readonly repeatable?: true;
  /** Where in the result a plaintext secret stands: sealed in stored responses, absent from logs. */
  readonly reveals?: 'apiKey.secret' | 'signingSecret';
  /** Also answered at the path without `/api/v1`, as the source writes it (section 4.3). */
  readonly alsoAtRoot?: true;
}

const one = <N extends string, S extends TSchema>(name: N, schema: S) =>
  Type.Object({ [name]: schema } as Record<N, S>, { required: [name] });
const deleted = <N extends string>(name: N, prefix: IdPrefix) =>
  Type.Object({ [name]: Id(prefix), deleted: Type.Literal(true) } as Record<N, ReturnType<typeof Id>> & {
    deleted: ReturnType<typeof Type.Literal<true>>;
  });

const table = <const T extends Record<string, Route>>(routes: T) => routes;

export const routes = table({
  // ── API keys ──────────────────────────────────────────────────────────────────────────────────────────────────────
  getMe: {
    method: 'GET',
    path: '/me',
    permission: 'read',
    tag: 'API keys',
    summary: 'Who is calling',
    status: 200,
    result: Me,
  },
  createKey: {
    method: 'POST',
    path: '/api_keys',
    permission: 'admin',
    tag: 'API keys',
    summary: 'Create a key; its secret is shown in this answer alone',
    body: CreateKey,
    status: 201,
    result: one('apiKey', ApiKeyWithSecret),
    reveals: 'apiKey.secret',
  },
  listKeys: {
    method: 'GET',
    path: '/api_keys',
    permission: 'admin',
    tag: 'API keys',
    summary: 'List the keys, newest first',
    query: ListKeys,
    status: 200,
    result: KeyPage,
  },
  getKey: {
    method: 'GET',
    path: '/api_keys/{keyId}',
    permission: 'admin',
    tag: 'API keys',
    summary: 'Read a key',
    params: KeyParams,
    status: 200,
    result: one('apiKey', ApiKey),
  },
  updateKey: {
    method: 'PATCH',
    path: '/api_keys/{keyId}',
    permission: 'admin',
    tag: 'API keys',
    summary: 'Change name, permission or metadata; the secret stays',
    params: KeyParams,
    body: UpdateKey,
    status: 200,
    result: one('apiKey', ApiKey),
  },
  rotateKey: {
    method: 'POST',
    path: '/api_keys/{keyId}/rotate',
    permission: 'admin',
    tag: 'API keys',
    summary: 'Give the key a new secret; the old one is refused from then on',
    params: KeyParams,
    status: 200,
    result: one('apiKey', ApiKeyWithSecret),
    reveals: 'apiKey.secret',
  },
  deleteKey: {
    method: 'DELETE',
    path: '/api_keys/{keyId}',
    permission: 'admin',
    tag: 'API keys',
    summary: 'Revoke the key for good',
    params: KeyParams,
    status: 200,
    result: deleted('keyId', 'key'),
  },

  // ── Agents ────────────────────────────────────────────────────────────────────────────────────────────────────────
  createAgent: {
    method: 'POST',
    path: '/agents',
    permission: 'write',
    tag: 'Agents',
    summary: 'Create an Agent',
    body: CreateAgent,
    status: 201,
    result: one('agent', Agent),
    errors: ['url_not_allowed'],
  },
  listAgents: {
    method: 'GET',
    path: '/agents',
    permission: 'read',
    tag: 'Agents',
    summary: 'List the Agents, newest first',
    query: ListAgents,
    status: 200,
    result: AgentPage,
  },
  getAgent: {
    method: 'GET',
    path: '/agents/{agentId}',
    permission: 'read',
    tag: 'Agents',
    summary: 'Read an Agent in its newest version',
    params: AgentParams,
    status: 200,
    result: one('agent', Agent),
  },
  listAgentVersions: {
    method: 'GET',
    path: '/agents/{agentId}/versions',
    permission: 'read',
    tag: 'Agents',
    summary: 'List the versions of an Agent, newest first',
    params: AgentParams,
    query: ListAgentVersions,
    status: 200,
    result: AgentPage,
  },
  updateAgent: {
    method: 'PATCH',
    path: '/agents/{agentId}',
    permission: 'write',
    tag: 'Agents',
    summary: 'Change an Agent: a new version',
    params: AgentParams,
    body: UpdateAgent,
    status: 200,
    result: one('agent', Agent),
    errors: ['agent_archived', 'url_not_allowed'],
  },
  archiveAgent: {
    method: 'DELETE',
    path: '/agents/{agentId}',
    permission: 'write',
    tag: 'Agents',
    summary: 'Archive an Agent; a turn under way ends as usual',
    params: AgentParams,
    status: 200,
    result: deleted('agentId', 'agt'),
  },

  // ── Environments ──────────────────────────────────────────────────────────────────────────────────────────────────
  listEnvironments: {
    method: 'GET',
    path: '/environments',
    permission: 'read',
    tag: 'Environments',
    summary: 'List the Environments, newest first',
    query: ListEnvironments,
    status: 200,
    result: EnvironmentPage,
  },
  createEnvironment: {
    method: 'POST',
    path: '/environments',
    permission: 'write',
    tag: 'Environments',
    summary: 'Create an Environment',
    body: CreateEnvironment,
    status: 201,
    result: one('environment', Environment),
    errors: ['environment_exists'],
  },
  deleteEnvironment: {
    method: 'DELETE',
    path: '/environments/{env}',
    permission: 'write',
    tag: 'Environments',
    summary: 'Delete an Environment without open Sessions, subscription and schedules',
    params: EnvironmentParams,
    status: 200,
    result: deleted('environmentId', 'env'),
    errors: ['conflict'],
  },
  listSecrets: {
    method: 'GET',
    path: '/environments/{env}/secrets',
    permission: 'admin',
    tag: 'Environments',
    summary: 'List the secrets of an Environment, by name; never their values',
    params: EnvironmentParams,
    query: ListEnvironments,
    status: 200,
    result: SecretPage,
  },
  setSecret: {
    method: 'PUT',
    path: '/environments/{env}/secrets/{name}',
    permission: 'admin',
    tag: 'Environments',
    summary: 'Set a secret and the hosts that may get it',
    params: SecretParams,
    body: SetSecret,
    status: 200,
    result: one('secret', EnvironmentSecret),
  },
  deleteSecret: {
    method: 'DELETE',
    path: '/environments/{env}/secrets/{name}',
    permission: 'admin',
    tag: 'Environments',
    summary: 'Delete a secret',
    params: SecretParams,
    status: 200,
    result: Type.Object({ name: Type.String(), deleted: Type.Literal(true) }),
  },

  // ── Sessions ──────────────────────────────────────────────────────────────────────────────────────────────────────
  openSession: {
    method: 'POST',
    path: '/sessions',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Open a Session; with `input` its first turn begins at once',
    body: OpenSession,
    status: 201,
    result: one('session', Session),
    errors: ['not_found', 'agent_archived', 'budget_invalid'],
  },
  listSessions: {
    method: 'GET',
    path: '/sessions',
    permission: 'read',
    tag: 'Sessions',
    summary: 'List the Sessions, newest first',
    query: ListSessions,
    status: 200,
    result: SessionPage,
  },
  getSession: {
    method: 'GET',
    path: '/sessions/{sessionId}',
    permission: 'read',
    tag: 'Sessions',
    summary: 'Read a Session',
    params: SessionParams,
    status: 200,
    result: one('session', Session),
  },
  updateSession: {
    method: 'PATCH',
    path: '/sessions/{sessionId}',
    permission: 'write',
    tag: 'Sessions',
    summary: "Change a Session's metadata",
    params: SessionParams,
    body: UpdateSession,
    status: 200,
    result: one('session', Session),
  },
  deleteSession: {
    method: 'DELETE',
    path: '/sessions/{sessionId}',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Delete an ended Session, its children and all of their data, for good',
    params: SessionParams,
    status: 200,
    result: deleted('sessionId', 'ses'),
    errors: ['conflict'],
  },
  sendMessage: {
    method: 'POST',
    path: '/sessions/{sessionId}/messages',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Say something: the next turn, now or after the present one',
    params: SessionParams,
    body: SendMessage,
    status: 202,
    result: Type.Object({ session: Session, messageId: Id('msg') }),
    errors: ['session_ended', 'session_busy', 'agent_archived', 'budget_invalid'],
  },
  listMessages: {
    method: 'GET',
    path: '/sessions/{sessionId}/messages',
    permission: 'read',
    tag: 'Sessions',
    summary: 'Read the transcript, oldest first',
    params: SessionParams,
    query: ListMessages,
    status: 200,
    result: MessagePage,
  },
  sendToolResult: {
    method: 'POST',
    path: '/sessions/{sessionId}/tool_results',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Give the result of a client tool; the same again is 200, another is 409',
    params: SessionParams,
    body: ToolResult,
    status: 200,
    result: one('session', Session),
    errors: ['session_ended', 'conflict'],
  },
  interruptSession: {
    method: 'POST',
    path: '/sessions/{sessionId}/interrupt',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Stop the turn; the next queued message follows, or the Session is idle',
    params: SessionParams,
    status: 200,
    result: one('session', Session),
    errors: ['session_ended'],
  },
  closeSession: {
    method: 'POST',
    path: '/sessions/{sessionId}/close',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Complete the Session when its turn is over',
    params: SessionParams,
    status: 200,
    result: one('session', Session),
    errors: ['session_ended'],
  },
  cancelSession: {
    method: 'POST',
    path: '/sessions/{sessionId}/cancel',
    permission: 'write',
    tag: 'Sessions',
    summary: 'Cancel the Session now',
    params: SessionParams,
    status: 200,
    result: one('session', Session),
    errors: ['session_ended'],
  },
  listChunks: {
    method: 'GET',
    path: '/sessions/{sessionId}/chunks',
    permission: 'read',
    tag: 'Sessions',
    summary: 'Read the journal after a cursor, oldest first; `limit` counts chunks',
    params: SessionParams,
    query: ListChunks,
    status: 200,
    result: EnvelopePage,
  },
  streamSession: {
    method: 'GET',
    path: '/sessions/{sessionId}/stream',
    permission: 'read',
    tag: 'Sessions',
    summary: 'Follow the journal live; resumes after `cursor` or `Last-Event-ID`, 204 when nothing can follow',
    params: SessionParams,
    query: StreamQuery,
    status: 200,
    result: Envelope,
    stream: 'sse',
  },

  // ── Approvals ─────────────────────────────────────────────────────────────────────────────────────────────────────
  listApprovals: {
    method: 'GET',
    path: '/approvals',
    permission: 'read',
    tag: 'Approvals',
    summary: 'List approvals over all Sessions, oldest first',
    query: ListApprovals,
    status: 200,
    result: ApprovalPage,
  },
  getApproval: {
    method: 'GET',
    path: '/approvals/{operationId}',
    permission: 'read',
    tag: 'Approvals',
    summary: 'Read an approval',
    params: ApprovalParams,
    status: 200,
    result: one('approval', Approval),
  },
  resolveApproval: {
    method: 'POST',
    path: '/approvals/{operationId}/resolve',
    permission: 'write',
    tag: 'Approvals',
    summary: 'Approve or deny; the first decision wins',
    params: ApprovalParams,
    body: ResolveApproval,
    status: 200,
    result: one('approval', Approval),
    errors: ['approval_already_resolved'],
  },

  // ── Worker turns ───────────────────────────────────────────────────────────────────────────────────────────────────
  claimWorkerTurn: {
    method: 'POST',
    path: '/worker_turns/claim',
    permission: 'write',
    tag: 'Worker turns',
    summary: 'Wait for a step that is offered on a queue, and claim it; null where none came',
    body: ClaimWorkerTurn,
    status: 200,
    result: ClaimedWorkerTurn,
    errors: ['not_found', 'turn_lost'],
    repeatable: true,
  },
  heartbeatWorkerTurn: {
    method: 'POST',
    path: '/worker_turns/{workerTurnId}/heartbeat',
    permission: 'write',
    tag: 'Worker turns',
    summary: 'Keep a claimed step: without a heartbeat its lease runs out and it is offered again',
    params: WorkerTurnParams,
    status: 200,
    result: WorkerTurnLease,
    errors: ['turn_lost'],
    repeatable: true,
  },
  appendToWorkerTurn: {
    method: 'POST',
    path: '/worker_turns/{workerTurnId}/append',
    permission: 'write',
    tag: 'Worker turns',
    summary: "Show text of the step's answer; it is in the journal when this is answered",
    params: WorkerTurnParams,
    body: AppendToWorkerTurn,
    status: 200,
    result: WorkerTurnCursor,
    errors: ['turn_lost', 'conflict'],
    repeatable: true,
  },
  completeWorkerTurn: {
    method: 'POST',
    path: '/worker_turns/{workerTurnId}/complete',
    permission: 'write',
    tag: 'Worker turns',
    summary:
      'Answer the step: with tool calls, or without, which ends the turn; or give the results of its client tools',
    params: WorkerTurnParams,
    body: CompleteWorkerTurn,
    status: 200,
    result: Type.Object({ workerTurnId: Id('wtn'), completed: Type.Literal(true) }),
    errors: ['turn_lost'],
  },
  releaseWorkerTurn: {
    method: 'POST',
    path: '/worker_turns/{workerTurnId}/release',
    permission: 'write',
    tag: 'Worker turns',
    summary: 'Give a claimed step back: it is offered again at once, and text that it showed is void',
    params: WorkerTurnParams,
    status: 200,
    result: Type.Object({ workerTurnId: Id('wtn'), released: Type.Literal(true) }),
    errors: ['turn_lost'],
  },

  // ── Schedules ─────────────────────────────────────────────────────────────────────────────────────────────────────
  createSchedule: {
    method: 'POST',
    path: '/schedules',
    permission: 'write',
    tag: 'Schedules',
    summary: 'Create a schedule, which opens a Session at each of its times',
    body: CreateSchedule,
    status: 201,
    result: one('schedule', Schedule),
    errors: ['not_found', 'agent_archived', 'budget_invalid'],
  },
  listSchedules: {
    method: 'GET',
    path: '/schedules',
    permission: 'read',
    tag: 'Schedules',
    summary: 'List the schedules, newest first',
    query: ListSchedules,
    status: 200,
    result: SchedulePage,
  },
  getSchedule: {
    method: 'GET',
    path: '/schedules/{scheduleId}',
    permission: 'read',
    tag: 'Schedules',
    summary: 'Read a schedule',
    params: ScheduleParams,
    status: 200,
    result: one('schedule', Schedule),
  },
  updateSchedule: {
    method: 'PATCH',
    path: '/schedules/{scheduleId}',
    permission: 'write',
    tag: 'Schedules',
    summary: 'Change a schedule, pause it or enable it again; Sessions that it opened stay as they are',
    params: ScheduleParams,
    body: UpdateSchedule,
    status: 200,
    result: one('schedule', Schedule),
    errors: ['agent_archived', 'budget_invalid'],
  },
  deleteSchedule: {
    method: 'DELETE',
    path: '/schedules/{scheduleId}',
    permission: 'write',
    tag: 'Schedules',
    summary: 'Delete a schedule and its runs; Sessions that it opened stay',
    params: ScheduleParams,
    status: 200,
    result: deleted('scheduleId', 'sch'),
  },
  listScheduleRuns: {
    method: 'GET',
    path: '/schedules/{scheduleId}/runs',
    permission: 'read',
    tag: 'Schedules',
    summary: 'List what became of the occurrences of a schedule, newest first',
    params: ScheduleParams,
    query: ListScheduleRuns,
    status: 200,
    result: ScheduleRunPage,
  },

  // ── Webhook subscriptions ─────────────────────────────────────────────────────────────────────────────────────────
  listWebhookSubscriptions: {
    method: 'GET',
    path: '/webhook_subscriptions',
    permission: 'read',
    tag: 'Webhook subscriptions',
    summary: 'List the subscriptions across Environments, newest first',
    query: ListWebhookSubscriptions,
    status: 200,
    result: WebhookSubscriptionPage,
    alsoAtRoot: true,
  },
  createWebhookSubscription: {
    method: 'POST',
    path: '/webhook_subscriptions',
    permission: 'write',
    tag: 'Webhook subscriptions',
    summary: 'Subscribe an Environment; its signing secret is shown in this answer alone',
    body: CreateWebhookSubscription,
    status: 201,
    result: CreatedWebhookSubscription,
    errors: ['not_found', 'subscription_exists', 'url_not_allowed'],
    reveals: 'signingSecret',
    alsoAtRoot: true,
  },
  getWebhookSubscription: {
    method: 'GET',
    path: '/webhook_subscriptions/{env}',
    permission: 'read',
    tag: 'Webhook subscriptions',
    summary: 'Read the subscription of an Environment',
    params: SubscriptionParams,
    status: 200,
    result: one('webhookSubscription', WebhookSubscription),
    alsoAtRoot: true,
  },
  updateWebhookSubscription: {
    method: 'PATCH',
    path: '/webhook_subscriptions/{env}',
    permission: 'write',
    tag: 'Webhook subscriptions',
    summary: 'Change url or chunk types, pause it or enable it again',
    params: SubscriptionParams,
    body: UpdateWebhookSubscription,
    status: 200,
    result: one('webhookSubscription', WebhookSubscription),
    errors: ['url_not_allowed'],
    alsoAtRoot: true,
  },
  deleteWebhookSubscription: {
    method: 'DELETE',
    path: '/webhook_subscriptions/{env}',
    permission: 'write',
    tag: 'Webhook subscriptions',
    summary: 'Delete the subscription',
    params: SubscriptionParams,
    status: 200,
    result: deleted('webhookSubscriptionId', 'whs'),
    alsoAtRoot: true,
  },
  rotateWebhookSecret: {
    method: 'POST',
    path: '/webhook_subscriptions/{env}/rotate_secret',
    permission: 'write',
    tag: 'Webhook subscriptions',
    summary: 'Make a new signing secret; the one before signs too until the grace period is over',
    params: SubscriptionParams,
    body: RotateSecret,
    status: 200,
    result: RotatedSecret,
    reveals: 'signingSecret',
    alsoAtRoot: true,
  },
  listDeliveries: {
    method: 'GET',
    path: '/webhook_subscriptions/{env}/deliveries',
    permission: 'read',
    tag: 'Webhook subscriptions',
    summary: 'List deliveries, newest first',
    params: SubscriptionParams,
    query: ListDeliveries,
    status: 200,
    result: WebhookDeliveryPage,
    alsoAtRoot: true,
  },
  getDelivery: {
    method: 'GET',
    path: '/webhook_subscriptions/{env}/deliveries/{deliveryId}',
    permission: 'read',
    tag: 'Webhook subscriptions',
    summary: 'Read a delivery with its attempts',
    params: DeliveryParams,
    status: 200,
    result: one('webhookDelivery', WebhookDeliveryWithAttempts),
    alsoAtRoot: true,
  },

  // ── Usage ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  getUsage: {
    method: 'GET',
    path: '/usage',
    permission: 'read',
    tag: 'Usage',
    summary: 'Read what the organization used, in whole days of UTC',
    query: GetUsage,
    status: 200,
    result: UsageReport,
  },

  // ── Event log ─────────────────────────────────────────────────────────────────────────────────────────────────────
  listEvents: {
    method: 'GET',
    path: '/events',
    permission: 'read',
    tag: 'Event log',
    summary: 'Read who changed what; with `wait`, as it happens',
    query: ListEvents,
    status: 200,
    result: EventPage,
    repeatable: true,
  },
  exportEvents: {
    method: 'GET',
    path: '/events/export',
    permission: 'read',
    tag: 'Event log',
    summary: 'Read all of it as one file, oldest first, up to the newest record when it began',
    query: ExportEvents,
    status: 200,
    result: Event,
    stream: 'export',
  },
  getEvent: {
    method: 'GET',
    path: '/events/{eventId}',
    permission: 'read',
    tag: 'Event log',
    summary: 'Read a record',
    params: EventParams,
    status: 200,
    result: one('event', Event),
  },
});

export type Routes = typeof routes;
export type RouteName = keyof Routes;

type Part<R, K extends 'params' | 'query' | 'body'> = R extends { readonly [P in K]: infer S extends TSchema }
  ? Static<S>
  : unknown;

/** What a route takes: path parameters, query and body in one object; no name stands in two of them. */
export type Input<N extends RouteName> = Part<Routes[N], 'params'> & Part<Routes[N], 'query'> & Part<Routes[N], 'body'>;
/** What a route answers with when all went well. */
export type Result<N extends RouteName> = Static<Routes[N]['result']>;
