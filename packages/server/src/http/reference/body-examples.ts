// An example body for every operation that has one, for the OpenAPI document and the reference page. A test validates each
// against the contract's schema.
import type { documentedRoutes } from '@signalbox/contract';

type Routes = typeof documentedRoutes;
type RouteWithBody = {
  [Name in keyof Routes]: Routes[Name] extends { body: object } ? Name : never;
}[keyof Routes];

export const bodyExamples = {
  testTool: {
    tool: {
      type: 'http',
      name: 'find_order',
      description: 'Finds an order.',
      inputSchema: { type: 'object', properties: { orderId: { type: 'string' } }, required: ['orderId'] },
      request: {
        method: 'GET',
        url: 'https://shop.example.com/orders/{{input.orderId}}',
        headers: { Authorization: 'Bearer {{secrets.SHOP_TOKEN}}' },
      },
    },
    input: { orderId: '1041' },
  },
  listMcpTools: { server: { type: 'mcp', name: 'crm', url: 'https://crm.example.com/mcp' } },
  createKey: { name: 'Billing', permission: 'write', expiresAt: '2030-01-31T00:00:00.000Z' },
  createOrganization: { name: 'Acme' },
  createOrganizationKey: { name: 'First', permission: 'admin' },
  updateKey: { name: 'Billing, nightly', metadata: { team: 'payments' } },
  rotateKey: { gracePeriodSeconds: 86_400 },
  createAgent: {
    name: 'Refunds',
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: {
        script: [
          { text: 'I will refund it.', toolCalls: [{ name: 'refund', input: { orderId: '1041', amount: 20 } }] },
          { text: 'Done: {{lastToolResult}}' },
        ],
      },
    },
    instructions: 'You answer customers of a shop.',
    tools: [
      {
        type: 'http',
        name: 'refund',
        description: 'Refunds an order.',
        inputSchema: {
          type: 'object',
          properties: { orderId: { type: 'string' }, amount: { type: 'number' } },
          required: ['orderId', 'amount'],
        },
        request: {
          method: 'POST',
          url: 'https://payments.example.com/orders/{{input.orderId}}/refunds',
          headers: { authorization: 'Bearer {{secrets.PAYMENTS_TOKEN}}' },
          body: { amount: '{{input.amount}}' },
        },
        approval: 'always',
      },
    ],
  },
  updateAgent: { instructions: 'You answer customers of a shop, in one sentence.', expectedVersion: 2 },
  createEnvironment: { name: 'preview' },
  updateEnvironment: { keepSessionsDays: 30, modelLimits: [{ model: '*', requestsPerMinute: 60 }] },
  setBudget: { limitUsd: 500, period: 'month' },
  setSecret: { value: 'the secret itself', allowedHosts: ['payments.example.com'] },
  cancelSessions: { environment: 'production', status: 'waiting', until: '2026-01-31T00:00:00.000Z' },
  closeSessions: { sessionIds: ['ses_01k9xq3v7gf3pbt8zn5e6m2r4c'] },
  openSession: {
    agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c',
    environment: 'production',
    input: 'Please refund order 1041.',
    metadata: { customer: '17' },
  },
  updateSession: { metadata: { customer: '17', ticket: 'T-204' } },
  forkSession: { atTurn: 2, input: 'Try it with a discount.' },
  retrySession: { without: { fileIds: ['file_01k9xq3v7gf3pbt8zn5e6m2r4c'] } },
  createSessionShare: { title: 'Refund of order 1041', expiresAt: '2026-02-07T09:30:00.000Z' },
  createSessionToken: { scopes: ['read', 'send'] },
  createEndUserToken: {
    agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c',
    environment: 'production',
    endUser: { id: 'user_1041', name: 'Mara' },
    scopes: ['read', 'send', 'open'],
  },
  sendMessage: { content: 'And tell me when it is done.', onBusy: 'queue' },
  sendToolResult: { toolCallId: 'call_01k9xq3v7gf3pbt8zn5e6m2r4c', output: { temperature: 21 } },
  resolveApproval: { decision: 'approved', reason: 'Checked the order.', onBehalfOf: 'mara@example.com' },
  resolveApprovals: {
    operationIds: ['op_01k9xq3v7gf3pbt8zn5e6m2r4c', 'op_01k9xq4a1mdq0s3v6w8y2b5e7h'],
    decision: 'denied',
    reason: 'The campaign is over.',
  },
  updateMember: { role: 'approver', canDecide: { environments: ['production'] } },
  createInvitation: { role: 'member', email: 'mara@example.com', name: 'Mara' },
  setOrganization: { allowedOrigins: ['https://app.example.com', 'http://localhost:5173'] },
  updateOrganization: { name: 'Acme' },
  createSchedule: {
    agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c',
    environment: 'production',
    input: 'Summarize what customers asked since the last report.',
    cron: '0 9 * * 1-5',
    timezone: 'Europe/Berlin',
  },
  updateSchedule: { status: 'paused' },
  claimWorkerTurn: { queue: 'support-agent', environment: 'production', waitSeconds: 20 },
  appendToWorkerTurn: { deltas: ['Your order ', 'is on its way.'], after: 'turn_1:seq_1' },
  completeWorkerTurn: {
    toolCalls: [{ tool: 'find_order', input: { id: '1017' } }],
    usage: { inputTokens: 812, outputTokens: 37 },
  },
  createWebhookSubscription: { environment: 'production', url: 'https://example.com/hooks/signalbox' },
  updateWebhookSubscription: { status: 'paused' },
  rotateWebhookSecret: { gracePeriodSeconds: 3600 },
  recoverDeliveries: { since: '2026-01-31T09:30:00.000Z' },
  createDestination: {
    name: 'On call',
    type: 'webhook',
    eventTypes: ['approval.*', 'session.failed'],
    environment: 'production',
    url: 'https://example.com/hooks/signalbox',
    headers: { Authorization: 'Bearer the key that the receiver wants' },
  },
  updateDestination: { status: 'paused' },
  rotateDestinationSecret: { gracePeriodSeconds: 3600 },
  recoverDestination: { from: '2026-01-31T09:30:00.000Z' },
} satisfies Record<RouteWithBody, unknown>;
