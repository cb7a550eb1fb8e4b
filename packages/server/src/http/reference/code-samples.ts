// A TypeScript program for every operation, with the client's own method. A test compiles each, runs it, and compares the request
// that it sends with the operation. The API reference writes the curl and Python ones itself.
import type { Route, RouteName, SchemaObject } from '@signalbox/contract';
import { bodyExamples } from './body-examples.ts';

/** The method of the client, and the name of what it returns; for a list, of one item. */
const calls: Record<RouteName, [method: string, result: string]> = {
  getMe: ['me', 'me'],
  createKey: ['keys.create', 'apiKey'],
  listKeys: ['keys.list', 'apiKey'],
  getKey: ['keys.get', 'apiKey'],
  updateKey: ['keys.update', 'apiKey'],
  deleteKey: ['keys.delete', ''],
  rotateKey: ['keys.rotate', 'apiKey'],
  deleteOldSecret: ['keys.deleteOldSecret', ''],
  createAgent: ['agents.create', 'agent'],
  listAgents: ['agents.list', 'agent'],
  getAgent: ['agents.get', 'agent'],
  updateAgent: ['agents.update', 'agent'],
  archiveAgent: ['agents.archive', ''],
  listAgentVersions: ['agents.versions', 'version'],
  listEnvironments: ['environments.list', 'environment'],
  createEnvironment: ['environments.create', 'environment'],
  updateEnvironment: ['environments.update', 'environment'],
  deleteEnvironment: ['environments.delete', ''],
  streamEnvironment: ['environments.stream', '{ sessionId, chunks }'],
  listSecrets: ['environments.secrets.list', 'secret'],
  setSecret: ['environments.secrets.set', 'secret'],
  deleteSecret: ['environments.secrets.delete', ''],
  openSession: ['sessions.open', 'session'],
  listSessions: ['sessions.list', 'session'],
  countSessions: ['sessions.count', '{ count, isExact }'],
  exportSessions: ['sessions.export', 'session'],
  cancelSessions: ['sessions.cancelMany', 'changed'],
  closeSessions: ['sessions.closeMany', 'changed'],
  getSession: ['sessions.get', 'session'],
  getSessionDraft: ['sessions.draft', 'draft'],
  updateSession: ['sessions.update', 'session'],
  deleteSession: ['sessions.delete', ''],
  forkSession: ['sessions.fork', 'fork'],
  sendMessage: ['sessions.sendMessage', '{ session, messageId }'],
  listMessages: ['sessions.messages', 'message'],
  listTurns: ['sessions.turns', 'turn'],
  getOperation: ['sessions.operation', 'operation'],
  sendToolResult: ['sessions.sendToolResult', 'session'],
  interruptSession: ['sessions.interrupt', 'session'],
  retrySession: ['sessions.retry', 'session'],
  compactSession: ['sessions.compact', 'session'],
  closeSession: ['sessions.close', 'session'],
  cancelSession: ['sessions.cancel', 'session'],
  listChunks: ['sessions.chunks', 'envelope'],
  streamSession: ['sessions.stream', '{ chunks }'],
  createSessionToken: ['sessions.createToken', '{ token, expiresAt }'],
  createEndUserToken: ['sessionTokens.create', '{ token, expiresAt }'],
  getEndUser: ['endUsers.get', 'endUser'],
  eraseEndUser: ['endUsers.erase', '{ erasure }'],
  uploadFile: ['files.upload', 'file'],
  listFiles: ['files.list', 'file'],
  getFile: ['files.get', 'file'],
  deleteFile: ['files.delete', ''],
  getFileContent: ['files.content', 'content'],
  listApprovals: ['approvals.list', 'approval'],
  getApproval: ['approvals.get', 'approval'],
  resolveApproval: ['approvals.resolve', 'approval'],
  resolveApprovals: ['approvals.resolveMany', 'outcomes'],
  claimWorkerTurn: ['workers.claim', 'workerTurn'],
  heartbeatWorkerTurn: ['workers.heartbeat', 'leaseExpiresAt'],
  appendToWorkerTurn: ['workers.append', 'cursor'],
  completeWorkerTurn: ['workers.complete', ''],
  releaseWorkerTurn: ['workers.release', ''],
  listModels: ['agents.models', 'list'],
  testTool: ['agents.testTool', 'test'],
  listMcpTools: ['agents.mcpTools', 'list'],
  createSessionShare: ['sessions.share', '{ share, link }'],
  listSessionShares: ['sessions.shares', 'share'],
  deleteSessionShare: ['sessions.unshare', ''],
  runSchedule: ['schedules.run', 'run'],
  previewSchedule: ['schedules.preview', 'times'],
  createSchedule: ['schedules.create', 'schedule'],
  listSchedules: ['schedules.list', 'schedule'],
  getSchedule: ['schedules.get', 'schedule'],
  updateSchedule: ['schedules.update', 'schedule'],
  deleteSchedule: ['schedules.delete', ''],
  listScheduleRuns: ['schedules.runs', 'run'],
  listWebhookSubscriptions: ['webhookSubscriptions.list', 'subscription'],
  createWebhookSubscription: ['webhookSubscriptions.create', '{ webhookSubscription, signingSecret }'],
  getWebhookSubscription: ['webhookSubscriptions.get', 'subscription'],
  updateWebhookSubscription: ['webhookSubscriptions.update', 'subscription'],
  deleteWebhookSubscription: ['webhookSubscriptions.delete', ''],
  rotateWebhookSecret: ['webhookSubscriptions.rotateSecret', '{ signingSecret }'],
  testWebhookSubscription: ['webhookSubscriptions.test', 'attempt'],
  listReceivedWebhooks: ['webhookSubscriptions.received', 'webhook'],
  recoverDeliveries: ['webhookSubscriptions.recover', 'subscription'],
  listDeliveries: ['webhookSubscriptions.deliveries.list', 'delivery'],
  getDelivery: ['webhookSubscriptions.deliveries.get', 'delivery'],
  resendDelivery: ['webhookSubscriptions.deliveries.resend', 'delivery'],
  listDestinations: ['destinations.list', 'destination'],
  createDestination: ['destinations.create', '{ destination, signingSecret }'],
  getDestination: ['destinations.get', 'destination'],
  updateDestination: ['destinations.update', 'destination'],
  deleteDestination: ['destinations.delete', ''],
  rotateDestinationSecret: ['destinations.rotateSecret', '{ signingSecret }'],
  testDestination: ['destinations.test', 'attempt'],
  recoverDestination: ['destinations.recover', 'destination'],
  listDestinationDeliveries: ['destinations.deliveries', 'delivery'],
  getDestinationDelivery: ['destinations.delivery', 'delivery'],
  getOverview: ['overview', 'overview'],
  getUsage: ['usage.get', 'report'],
  getAnalytics: ['analytics.get', 'analytics'],
  listBudgets: ['budgets.list', 'budgets'],
  setBudget: ['budgets.set', 'budget'],
  deleteBudget: ['budgets.delete', ''],
  listMembers: ['members.list', 'member'],
  updateMember: ['members.update', 'member'],
  removeMember: ['members.remove', ''],
  resetPassword: ['members.resetPassword', '{ link }'],
  listInvitations: ['invitations.list', 'invitation'],
  createInvitation: ['invitations.create', '{ invitation, link }'],
  deleteInvitation: ['invitations.delete', ''],
  getOrganization: ['organization.get', 'organization'],
  setOrganization: ['organization.set', 'organization'],
  updateOrganization: ['organization.update', 'organization'],
  listEvents: ['events.list', 'event'],
  exportEvents: ['events.export', 'event'],
  getEvent: ['events.get', 'event'],
};

/** The line that creates the client; the reference page adds the address of its service. */
export const clientLine = 'const client = new Signalbox();';

/** The program, as text. */
export function typescriptSample(name: string, route: Route): string {
  const [method, result] = calls[name as RouteName];
  const { properties: params = {} } = (route.params ?? {}) as SchemaObject;
  const args = Object.values(params).map(({ examples }) => literal(examples?.[0]));
  const imports = ["import { Signalbox } from '@signalbox/client';"];
  if (route.upload) {
    imports.unshift("import { readFile } from 'node:fs/promises';");
    args.push("await readFile('photo.png')", literal({ environment: 'production', filename: 'photo.png' }));
  }
  const body = bodyExamples[name as keyof typeof bodyExamples];
  if (body) args.push(literal(body));
  const query = route.upload ? {} : requiredQuery(route);
  if (Object.keys(query).length > 0) args.push(literal(query));
  const call = `client.${method}(${args.join(', ')})`;
  return [...imports, '', clientLine, ...statement(call, result, isLoop(route))].join('\n');
}

/** An example of each parameter without which the request is refused. */
function requiredQuery(route: Route): Record<string, unknown> {
  const { properties = {}, required = [] } = (route.query ?? {}) as SchemaObject;
  return Object.fromEntries(
    required.map((name) => [name, properties[name]?.examples?.[0] ?? properties[name]?.enum?.[0]]),
  );
}

/** Whether the client's method returns an iterable: of pages, of envelopes or of records. */
function isLoop({ stream, result }: Route): boolean {
  return stream === 'sse' || stream === 'export' || (result as SchemaObject).properties?.page !== undefined;
}

function statement(call: string, result: string, loops: boolean): string[] {
  if (loops) {
    const shown = result.replaceAll(/[{}]/g, '').trim();
    return [`for await (const ${result} of ${call}) {`, `  console.log(${shown});`, '}'];
  }
  return [result ? `const ${result} = await ${call};` : `await ${call};`];
}

/** The value as a TypeScript literal, with short objects and arrays on one line. */
function literal(value: unknown, indent = '', before = 0): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return String(value);
  const isArray = Array.isArray(value);
  const items = isArray
    ? value.map((item) => literal(item, `${indent}  `))
    : Object.entries(value).map(([name, item]) => {
        const key = /^[a-z]\w*$/i.test(name) ? name : quoted(name);
        return `${key}: ${literal(item, `${indent}  `, key.length + 2)}`;
      });
  if (items.length === 0) return isArray ? '[]' : '{}';
  const line = isArray ? `[${items.join(', ')}]` : `{ ${items.join(', ')} }`;
  if (!line.includes('\n') && indent.length + before + line.length <= 56) return line;
  const [open, close] = isArray ? '[]' : '{}';
  return `${open}\n${items.map((item) => `${indent}  ${item},\n`).join('')}${indent}${close}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}
