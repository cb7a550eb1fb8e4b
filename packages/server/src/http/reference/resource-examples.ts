// One example of each resource, by the title of its schema, for the responses in the OpenAPI document. The types of the contract keep
// them complete; a test validates each against its schema.

import type {
  AnalyticsSum,
  ApiKey,
  ChangedSession,
  EndUserDetails,
  Environment,
  EnvironmentSecret,
  Erasure,
  Event,
  Invitation,
  Member,
  Organization,
  OrganizationBudget,
  Overview,
  Schedule,
  ScheduleRun,
  SessionShare,
  StoredFile,
  UsageSum,
  User,
  WebhookAttempt,
  WebhookDelivery,
  WebhookSubscription,
} from '@signalbox/contract';
import { authoringExamples } from './authoring-examples.ts';
import { bodyExamples } from './body-examples.ts';
import { destinationExamples } from './destination-examples.ts';
import {
  agent,
  approval,
  at,
  envelope,
  id,
  listedSession,
  messages,
  operationDetails,
  session,
  turn,
  workerTurn,
} from './session-examples.ts';

const sha256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const changedSession: ChangedSession = { sessionId: id('ses'), status: 'cancelled', error: null };

const apiKey: ApiKey = {
  keyId: id('key'),
  name: 'Billing',
  permission: 'write',
  scopes: ['sessions:read', 'agents:read', 'usage:read', 'events:read', 'sessions:run', 'approvals:decide'],
  expiresAt: '2030-01-31T00:00:00.000Z',
  allowedIps: null,
  environments: ['production'],
  agents: null,
  requestsPerMinute: null,
  maxCostUsdPerDay: 25,
  costUsdToday: 1.37,
  metadata: { team: 'payments' },
  secretPreview: 'sbk_…k3Qd',
  expiringSecret: null,
  lastUsedAt: at('09:30:00.000'),
  createdAt: at('08:10:00.000'),
  updatedAt: at('08:10:00.000'),
};

const file: StoredFile = {
  fileId: id('file'),
  environment: 'production',
  filename: 'photo.png',
  mediaType: 'image/png',
  bytes: 48_213,
  sha256,
  sessionId: null,
  uploadedBy: { type: 'end_user', id: 'customer_4711', name: 'Ada' },
  createdAt: at('09:29:30.000'),
};

const environment: Environment = {
  environmentId: id('env'),
  name: 'production',
  keepSessionsDays: 90,
  modelLimits: [
    { model: '*', requestsPerMinute: 60, tokensPerMinute: null, waiting: 12, waitingSince: at('08:59:30.000') },
  ],
  secretCount: 3,
  createdAt: at('08:00:00.000'),
};

const secret: EnvironmentSecret = {
  name: 'PAYMENTS_TOKEN',
  allowedHosts: ['payments.example.com'],
  version: 2,
  updatedAt: at('08:20:00.000'),
};

const lastRun: Schedule['lastRun'] = {
  scheduledAt: '2026-01-30T08:00:00.000Z',
  manual: false,
  status: 'opened',
  sessionId: id('ses'),
  session: { status: 'completed', stopReason: 'endTurn', error: null },
  error: null,
};

const schedule: Schedule = {
  scheduleId: id('sch'),
  name: 'Morning report',
  agentId: id('agt'),
  environment: 'production',
  input: bodyExamples.createSchedule.input,
  metadata: {},
  endUser: null,
  budget: { maxCostUsd: 0.5 },
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  at: null,
  status: 'enabled',
  closeOnIdle: true,
  nextAt: '2026-02-02T08:00:00.000Z',
  lastRun,
  failedRuns: 0,
  createdAt: at('08:40:00.000'),
  updatedAt: at('08:40:00.000'),
};

const scheduleRun: ScheduleRun = { ...lastRun, createdAt: '2026-01-30T08:00:00.412Z' };

const subscription: WebhookSubscription = {
  webhookSubscriptionId: id('whs'),
  environment: 'production',
  url: 'https://example.com/hooks/signalbox',
  chunkTypes: ['session.status', 'approval.requested'],
  status: 'enabled',
  disabledReason: null,
  secretVersion: 2,
  previousSecretExpiresAt: null,
  confirmedSecretVersion: 2,
  createdAt: at('08:30:00.000'),
  updatedAt: at('08:30:00.000'),
  lastSuccessAt: at('09:31:12.700'),
  lastFailureAt: null,
  health: {
    state: 'healthy',
    blockedBy: null,
    reason: null,
    failingSince: null,
    consecutiveFailures: 0,
    lastError: null,
    lastStatus: 200,
    nextProbeAt: null,
    failingSessionId: null,
  },
};

const delivery: WebhookDelivery = {
  deliveryId: id('whd'),
  webhookSubscriptionId: id('whs'),
  environment: 'production',
  sessionId: id('ses'),
  status: 'succeeded',
  previousCursor: 'turn_1:seq_9',
  cursor: 'turn_1:seq_17',
  attemptCount: 1,
  createdAt: at('09:31:12.490'),
  nextAttemptAt: null,
  finishedAt: at('09:31:12.700'),
};

const signature = 'c8f1a0f5f4b7d2a96a3a1f5f0d5b7c2e4e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b';
const signed = {
  'content-type': 'application/json',
  'x-service-delivery-id': id('whd'),
  'x-service-timestamp': '1769851872',
  'x-service-signature': signature,
};

const attempt: WebhookAttempt = {
  attempt: 1,
  at: at('09:31:12.500'),
  durationMs: 200,
  status: 200,
  error: null,
  secretVersion: 2,
  requestHeaders: signed,
  responseBody: '{"ok":true}',
};

const event: Event = {
  eventId: id('evt'),
  sequence: 128,
  type: 'approval.resolved',
  occurredAt: at('09:31:10.000'),
  outcome: 'success',
  actor: { type: 'user', id: id('usr'), name: 'Mara Lindgren' },
  resource: { type: 'approval', id: id('op') },
  environment: 'production',
  sessionId: id('ses'),
  agentId: id('agt'),
  changes: { status: ['pending', 'approved'] },
  context: { requestId: id('req'), ipAddress: '203.0.113.7', userAgent: 'Mozilla/5.0' },
  previousHash: sha256,
  hash: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
};

const sum: UsageSum = {
  inputTokens: 182_400,
  outputTokens: 21_950,
  cachedTokens: 120_300,
  steps: 412,
  unpricedSteps: 0,
  costUsd: 1.37,
};

const analytics: AnalyticsSum = {
  sessions: { opened: 128, completed: 121, failed: 3, cancelled: 1 },
  turns: { ended: 164, failed: 4 },
  turnDuration: { count: 164, p50Ms: 4_870, p95Ms: 16_380 },
  firstToken: { count: 371, p50Ms: 610, p95Ms: 1_740 },
  modelCalls: { succeeded: 369, failed: 6 },
  toolCalls: { ended: 212, failed: 5 },
  webhooks: { attempts: 540, failed: 2 },
  webhookDuration: { count: 540, p50Ms: 84, p95Ms: 240 },
  tokens: 204_350,
  webSearches: 12,
  costUsd: 1.37,
};

const budget: OrganizationBudget = {
  name: 'monthly',
  limitUsd: 500,
  period: 'month',
  stop: false,
  environment: null,
  agentId: null,
  keyId: null,
  thresholds: [50, 80, 100],
  spentUsd: 412.5,
  pricesDate: '2026-01-17',
  periodStartsAt: '2026-01-01T00:00:00.000Z',
  periodEndsAt: '2026-02-01T00:00:00.000Z',
  alerts: [
    { threshold: 50, alertedAt: '2026-01-16T11:20:15.000Z' },
    { threshold: 80, alertedAt: '2026-01-30T17:02:45.000Z' },
  ],
  createdAt: '2025-11-03T08:00:00.000Z',
  updatedAt: '2025-11-03T08:00:00.000Z',
};

const user: User = { userId: id('usr'), name: 'Mara Lindgren', email: 'mara@example.com' };
const access = { role: 'member', canDecide: null } as const;
const member: Member = { ...user, ...access, joinedAt: at('08:05:00.000'), lastSignedInAt: at('09:12:00.000') };

const invitation: Invitation = {
  invitationId: id('inv'),
  ...access,
  email: 'mara@example.com',
  name: 'Mara',
  invitedBy: 'Ida Berg',
  expiresAt: '2026-02-07T08:02:00.000Z',
  createdAt: at('08:02:00.000'),
};

const share: SessionShare = {
  shareId: id('shr'),
  sessionId: id('ses'),
  title: 'Refund of order 1041',
  includesTools: false,
  createdBy: 'Ida Berg',
  expiresAt: '2026-02-07T09:30:00.000Z',
  createdAt: at('09:30:00.000'),
};

const organization: Organization = {
  organizationId: id('org'),
  name: 'Acme',
  allowedOrigins: ['https://app.example.com'],
  pricesDate: '2026-01-17',
  createdAt: at('08:00:00.000'),
};

const overview: Overview = {
  sessions: { idle: 41, running: 3, waiting: 2, completed: 1207, failed: 4, cancelled: 9 },
  pendingApprovals: 2,
  webhooks: { blocked: 0, failing: 0, degraded: 0, disabled: 0, waitingDeliveries: 0 },
  schedules: { failing: 0 },
  keysExpiringSoon: 1,
};

const erasure: Erasure = {
  status: 'running',
  deletedSessions: 3,
  deletedFiles: 1,
  deletedSchedules: 0,
  startedAt: at('09:40:00.000'),
  finishedAt: null,
};

const endUser: EndUserDetails = { endUserId: 'user_1041', hasSessions: true, erasure: null };

/** By the title of the schema. */
export const resourceExamples: Record<string, unknown> = {
  Agent: agent,
  ApiKey: apiKey,
  ApiKeyWithSecret: { ...apiKey, secret: 'sbk_the_secret_is_shown_only_in_this_response' },
  ExpiringSecret: { preview: 'sbk_…9xTz', expiresAt: '2026-02-01T09:30:00.000Z' },
  Draft: {
    definition: bodyExamples.createAgent,
    mocks: { refund: { results: [{ output: { refunded: true } }], approval: 'skip' } },
  },
  Session: session,
  ListedSession: listedSession,
  ChangedSession: changedSession,
  Message: messages[0],
  Envelope: envelope,
  SessionTurn: turn,
  OperationDetails: operationDetails,
  SessionToken: {
    token: 'sbt_the_token_is_shown_only_in_this_response',
    expiresAt: at('10:30:00.000'),
    scopes: ['read', 'send'],
  },
  Approval: approval,
  ApprovalOutcome: {
    operationId: approval.operationId,
    status: 'denied',
    progress: { approved: 0, required: 1 },
    error: null,
  },
  StoredFile: file,
  Environment: environment,
  EnvironmentSecret: secret,
  Schedule: schedule,
  ScheduleRun: scheduleRun,
  WebhookSubscription: subscription,
  WebhookDelivery: delivery,
  WebhookDeliveryWithAttempts: { ...delivery, attempts: [attempt], requestBody: JSON.stringify(envelope) },
  WebhookAttempt: attempt,
  ...destinationExamples({ id, at, attempt, event }),
  ReceivedWebhook: {
    deliveryId: id('whd'),
    attempt: 1,
    verified: true,
    receivedAt: at('09:31:12.520'),
    headers: signed,
    body: JSON.stringify(envelope),
    truncated: false,
  },
  Event: event,
  OrganizationBudget: budget,
  AnalyticsSum: analytics,
  Analytics: {
    from: '2026-01-30T10:00:00.000Z',
    to: '2026-01-31T10:00:00.000Z',
    step: 'hour',
    total: analytics,
    previous: { ...analytics, turns: { ended: 151, failed: 1 }, costUsd: 1.21 },
    points: [{ at: '2026-01-30T10:00:00.000Z', ...analytics }],
    groups: [
      { group: id('agt'), ...analytics, failures: [{ code: 'model_rate_limited', count: 4, sessionId: id('ses') }] },
    ],
    pricesDate: '2026-01-17',
  },
  UsageReport: {
    from: '2026-01-31T00:00:00.000Z',
    to: '2026-02-01T00:00:00.000Z',
    groupBy: 'agent',
    total: sum,
    data: [{ group: id('agt'), name: 'Refunds', ...sum }],
    other: null,
    pricesDate: '2026-01-17',
  },
  User: user,
  Member: member,
  Invitation: invitation,
  CreatedInvitation: { invitation, link: 'https://signalbox.example.com/console/link#the_token_of_the_invitation' },
  SessionShare: share,
  CreatedSessionShare: { share, link: 'https://signalbox.example.com/console/share#the_token_of_the_link' },
  PasswordReset: {
    link: 'https://signalbox.example.com/console/link#the_token_of_the_reset',
    expiresAt: '2026-02-01T09:30:00.000Z',
  },
  SetupLink: { link: 'https://signalbox.example.com/console/link#the_token', expiresAt: '2026-02-01T09:30:00.000Z' },
  CreatedWebhookSubscription: {
    webhookSubscription: { ...subscription, secretVersion: 1, confirmedSecretVersion: null, lastSuccessAt: null },
    signingSecret: 'whsec_the_secret_is_shown_only_in_this_response',
  },
  Organization: organization,
  Overview: overview,
  ...authoringExamples,
  Erasure: erasure,
  EndUserDetails: endUser,
  WorkerTurn: workerTurn,
};
