// The function that handles each route. The rest about a route is in the contract's table.
import type { Input, Result, RouteName, Routes } from '@signalbox/contract';
import * as agents from '../agents/agents.ts';
import * as drafts from '../agents/drafts.ts';
import { getAnalytics } from '../analytics/report.ts';
import { getApproval } from '../approvals/approvals.ts';
import { listApprovals } from '../approvals/list.ts';
import { checkDecision, resolveApproval, resultOfDecision } from '../approvals/resolve.ts';
import * as budgets from '../budgets/budgets.ts';
import type { PlannedChange } from '../db/planned-change.ts';
import * as destinations from '../destinations/destinations.ts';
import { recoverDestination } from '../destinations/recover.ts';
import { getDestinationDelivery, listDestinationDeliveries } from '../destinations/webhook/list.ts';
import { testDestination } from '../destinations/webhook/test-delivery.ts';
import * as endUsers from '../end-users/end-users.ts';
import * as environments from '../environments/environments.ts';
import * as secrets from '../environments/secrets.ts';
import * as events from '../events/events.ts';
import { exportEvents } from '../events/export.ts';
import { getFileContent, type OpenFile } from '../files/content.ts';
import * as files from '../files/files.ts';
import type { ReceivedFile } from '../files/receive.ts';
import * as authoring from '../inspect/authoring.ts';
import { getOperation } from '../inspect/get-operation.ts';
import { streamSession } from '../journal/live.ts';
import { listChunks } from '../journal/read.ts';
import type { JournalStream } from '../journal/stream.ts';
import * as sessionTokens from '../keys/create-session-token.ts';
import * as keys from '../keys/keys.ts';
import { getMe } from '../keys/me.ts';
import type { OnlyCreate } from '../lib/api-error.ts';
import type { Context, PoolContext } from '../lib/context.ts';
import type { ExportedFile } from '../lib/files/exported-file.ts';
import { streamEnvironment } from '../listening/environment-streams.ts';
import { getOrganization, setOrganization, updateOrganization } from '../organizations/manage.ts';
import { getOverview } from '../overview/overview.ts';
import * as invitations from '../people/invitations.ts';
import * as members from '../people/members.ts';
import { runSchedule } from '../schedules/run.ts';
import { listScheduleRuns } from '../schedules/runs.ts';
import * as schedules from '../schedules/schedules.ts';
import { compactSession } from '../sessions/compact.ts';
import * as ending from '../sessions/end-session.ts';
import { forkSession } from '../sessions/forks.ts';
import * as messages from '../sessions/messages.ts';
import { cancelSessions, closeSessions } from '../sessions/reading/change-many.ts';
import { exportSessions } from '../sessions/reading/export.ts';
import { countSessions, listSessions } from '../sessions/reading/list.ts';
import * as shares from '../sessions/reading/shares.ts';
import { listTurns } from '../sessions/reading/timeline.ts';
import { retrySession } from '../sessions/retry.ts';
import * as sessions from '../sessions/sessions.ts';
import * as toolResults from '../sessions/tool-results.ts';
import { getUsage } from '../usage/usage.ts';
import * as deliveries from '../webhooks/deliveries.ts';
import { listReceivedWebhooks } from '../webhooks/received-webhooks.ts';
import { recoverDeliveries } from '../webhooks/recovery.ts';
import * as webhooks from '../webhooks/subscriptions.ts';
import { testWebhookSubscription } from '../webhooks/test-envelope.ts';
import * as workerTurns from '../workers/worker-turns.ts';

/** For a stream, what it reads from; undefined if nothing can follow. */
type HandlerResult<N extends RouteName> = Routes[N] extends { stream: 'sse' }
  ? JournalStream | undefined
  : Routes[N] extends { stream: 'export' }
    ? ExportedFile
    : Routes[N] extends { stream: 'content' }
      ? OpenFile
      : Result<N>;
/** A change runs in the transaction of its idempotency record, unless the contract says that it has none. */
type ContextOf<N extends RouteName> = Routes[N] extends { method: 'GET' } | { repeatable: true } | { actsOutside: true }
  ? PoolContext
  : Context;
/** The input of a route. An upload has the received file as its body; a PUT that can only create has whether it does. */
type InputOf<N extends RouteName> = Input<N> &
  (Routes[N] extends { upload: object } ? { received: ReceivedFile } : unknown) &
  (Routes[N] extends { canOnlyCreate: true } ? OnlyCreate : unknown);
type ActingRoute = { [N in RouteName]: Routes[N] extends { each: object } ? never : N }[RouteName];
export type Handlers = { [N in ActingRoute]: (ctx: ContextOf<N>, input: InputOf<N>) => Promise<HandlerResult<N>> };

/**
 * Checks that run before the request acts, outside a transaction: checking a schema may take a second, and longer under load. They
 * throw 400.
 */
export const checks: { readonly [N in RouteName]?: (ctx: PoolContext, input: Input<N>) => Promise<void> } = {
  createAgent: agents.checkSchemas,
  updateAgent: agents.checkSchemas,
  openSession: drafts.checkDraft,
  forkSession: drafts.checkDraft,
  resolveApproval: checkDecision,
};

/** Changes that may need no transaction of their own: what they do, if this node can tell without reading. */
export const plans: {
  readonly [N in RouteName]?: (ctx: Context, input: Input<N>) => PlannedChange<Result<N>> | undefined;
} = {
  openSession: sessions.planSession,
};

/** For the routes with `each`: what the response says about each id. */
export const eachResults: { readonly [N in Exclude<RouteName, ActingRoute>]: unknown } = {
  resolveApprovals: resultOfDecision,
};

export const handlers: Handlers = {
  getMe,
  createKey: keys.createKey,
  listKeys: keys.listKeys,
  getKey: keys.getKey,
  updateKey: keys.updateKey,
  rotateKey: keys.rotateKey,
  deleteOldSecret: keys.deleteOldSecret,
  deleteKey: keys.deleteKey,

  getEndUser: endUsers.getEndUser,
  eraseEndUser: endUsers.eraseEndUser,

  createAgent: agents.createAgent,
  listAgents: agents.listAgents,
  getAgent: agents.getAgent,
  listAgentVersions: agents.listAgentVersions,
  updateAgent: agents.updateAgent,
  archiveAgent: agents.archiveAgent,
  listModels: authoring.listModels,
  testTool: authoring.testTool,
  listMcpTools: authoring.listMcpTools,

  listEnvironments: environments.listEnvironments,
  createEnvironment: environments.createEnvironment,
  updateEnvironment: environments.updateEnvironment,
  deleteEnvironment: environments.deleteEnvironment,
  streamEnvironment,
  listSecrets: secrets.listSecrets,
  setSecret: secrets.setSecret,
  deleteSecret: secrets.deleteSecret,

  openSession: sessions.openSession,
  listSessions,
  countSessions,
  exportSessions,
  cancelSessions,
  closeSessions,
  getSession: sessions.getSession,
  getSessionDraft: drafts.getSessionDraft,
  updateSession: sessions.updateSession,
  deleteSession: sessions.deleteSession,
  forkSession,
  interruptSession: ending.interruptSession,
  retrySession,
  compactSession,
  closeSession: ending.closeSession,
  cancelSession: ending.cancelSession,
  sendMessage: messages.sendMessage,
  listMessages: messages.listMessages,
  listTurns,
  getOperation,
  sendToolResult: toolResults.sendToolResult,
  listChunks,
  streamSession,

  createSessionShare: shares.createSessionShare,
  listSessionShares: shares.listSessionShares,
  deleteSessionShare: shares.deleteSessionShare,

  createSessionToken: sessionTokens.createSessionToken,
  createEndUserToken: sessionTokens.createEndUserToken,

  uploadFile: files.uploadFile,
  listFiles: files.listFiles,
  getFile: files.getFile,
  getFileContent,
  deleteFile: files.deleteFile,

  listApprovals,
  getApproval,
  resolveApproval,

  createSchedule: schedules.createSchedule,
  listSchedules: schedules.listSchedules,
  getSchedule: schedules.getSchedule,
  updateSchedule: schedules.updateSchedule,
  deleteSchedule: schedules.deleteSchedule,
  runSchedule,
  previewSchedule: schedules.previewSchedule,
  listScheduleRuns,

  claimWorkerTurn: workerTurns.claimWorkerTurn,
  heartbeatWorkerTurn: workerTurns.heartbeatWorkerTurn,
  appendToWorkerTurn: workerTurns.appendToWorkerTurn,
  completeWorkerTurn: workerTurns.completeWorkerTurn,
  releaseWorkerTurn: workerTurns.releaseWorkerTurn,

  listWebhookSubscriptions: webhooks.listWebhookSubscriptions,
  createWebhookSubscription: webhooks.createWebhookSubscription,
  getWebhookSubscription: webhooks.getWebhookSubscription,
  updateWebhookSubscription: webhooks.updateWebhookSubscription,
  deleteWebhookSubscription: webhooks.deleteWebhookSubscription,
  rotateWebhookSecret: webhooks.rotateWebhookSecret,
  testWebhookSubscription,
  listReceivedWebhooks,
  recoverDeliveries,
  listDeliveries: deliveries.listDeliveries,
  getDelivery: deliveries.getDelivery,
  resendDelivery: deliveries.resendDelivery,

  listDestinations: destinations.listDestinations,
  createDestination: destinations.createDestination,
  getDestination: destinations.getDestination,
  updateDestination: destinations.updateDestination,
  deleteDestination: destinations.deleteDestination,
  rotateDestinationSecret: destinations.rotateDestinationSecret,
  testDestination,
  recoverDestination,
  listDestinationDeliveries,
  getDestinationDelivery,

  getOverview,

  listMembers: members.listMembers,
  updateMember: members.updateMember,
  removeMember: members.removeMember,
  listInvitations: invitations.listInvitations,
  createInvitation: invitations.createInvitation,
  deleteInvitation: invitations.deleteInvitation,
  resetPassword: invitations.resetPassword,
  getOrganization,
  setOrganization,
  updateOrganization,

  getUsage,
  getAnalytics,
  listBudgets: budgets.listBudgets,
  setBudget: budgets.setBudget,
  deleteBudget: budgets.deleteBudget,

  listEvents: events.listEvents,
  getEvent: events.getEvent,
  exportEvents,
};
