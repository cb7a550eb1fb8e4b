// The examples of an agent, of a session with it, and of what belongs to the session. They tell one story: the agent of a shop refunds
// order 1041 after Mara has approved it.
import {
  type Agent,
  type Approval,
  type Chunk,
  type Envelope,
  type ListedSession,
  type Message,
  type OperationDetails,
  providerFacts,
  type Session,
  type SessionTurn,
  type Usage,
  type WorkerTurn,
} from '@signalbox/contract';
import { bodyExamples } from './body-examples.ts';

const claude = providerFacts.anthropic.own.exampleModel;

/** An identifier as in the examples of the contract. */
export const id = (prefix: string) => `${prefix}_01k9xq3v7gf3pbt8zn5e6m2r4c`;

/** A moment of the morning on which everything happens. */
export const at = (time: string) => `2026-01-31T${time}Z`;

const usage: Usage = {
  inputTokens: 1412,
  outputTokens: 96,
  cachedTokens: 1024,
  steps: 2,
  toolCalls: 1,
  costUsd: 0.0042,
};

const refund = { orderId: '1041', amount: 20 };

const decider = { type: 'user' as const, id: id('usr'), name: 'Mara Lindgren', onBehalfOf: null };

const limits: Agent['limits'] = {
  maxStepsPerTurn: 20,
  maxOutputTokens: null,
  continueWhenCut: 2,
  turnTimeoutSeconds: 3600,
  modelOutageSeconds: 86_400,
  approvalTimeoutSeconds: 86_400,
  onApprovalTimeout: 'deny',
  compactAtTokens: null,
};

const { name, instructions } = bodyExamples.createAgent;

export const agent: Agent = {
  agentId: id('agt'),
  version: 3,
  name,
  description: 'Answers customers, and refunds orders after approval.',
  model: {
    provider: 'anthropic',
    model: claude,
    apiKeySecret: 'ANTHROPIC_API_KEY',
    fallbacks: [{ provider: 'openai', model: providerFacts.openai.own.exampleModel, apiKeySecret: 'OPENAI_API_KEY' }],
  },
  instructions,
  tools: bodyExamples.createAgent.tools as Agent['tools'],
  limits,
  outputSchema: null,
  showReasoning: false,
  showToolInput: false,
  metadata: { team: 'payments' },
  createdAt: at('08:15:00.000'),
  updatedAt: at('09:00:00.000'),
  archivedAt: null,
};

export const session: Session = {
  sessionId: id('ses'),
  agentId: id('agt'),
  agentVersion: null,
  draft: false,
  environment: 'production',
  status: 'idle',
  waitingFor: null,
  stopReason: 'endTurn',
  turn: 1,
  cursor: 'turn_1:seq_17',
  usage,
  budget: null,
  error: null,
  leftOut: null,
  metadata: { customer: '17' },
  endUser: { id: 'user_1041', name: 'Jon Bell' },
  parentSessionId: null,
  forkedFrom: null,
  createdAt: at('09:30:00.000'),
  updatedAt: at('09:31:12.480'),
  endedAt: null,
};

export const listedSession: ListedSession = {
  ...session,
  preview: 'Order 1042 arrived damaged. Can I have my money back?',
  workingMs: 3120,
};

export const messages: Message[] = [
  {
    messageId: id('msg'),
    role: 'user',
    turn: 1,
    content: [{ type: 'text', text: 'Please refund order 1041.' }],
    createdAt: at('09:30:00.000'),
  },
  {
    messageId: 'msg_01k9xq3xbh2d0m6ktfv8e4n7ra',
    role: 'assistant',
    turn: 1,
    content: [
      { type: 'text', text: 'I will refund it.' },
      { type: 'tool_call', toolCallId: id('call'), tool: 'refund', input: refund },
    ],
    createdAt: at('09:30:01.910'),
  },
];

const chunks: Chunk[] = [
  { type: 'message.chunk', delta: 'Done: order 1041 ', turn: 1, seq: 14 },
  { type: 'message.chunk', delta: 'is refunded.', turn: 1, seq: 15 },
  {
    type: 'turn.completed',
    stopReason: 'endTurn',
    usage,
    messageId: 'msg_01k9xq5zt0c8w2hy6jn4r7qdpb',
    turn: 1,
    seq: 16,
  },
  { type: 'session.status', status: 'idle', waitingFor: null, stopReason: 'endTurn', turn: 1, seq: 17 },
];

export const envelope: Envelope = {
  event: 'session.chunks',
  environment: 'production',
  sessionId: id('ses'),
  agentId: id('agt'),
  cursor: 'turn_1:seq_17',
  timestamp: at('09:31:12.480'),
  chunks,
};

const modelUsage = { inputTokens: 702, outputTokens: 58, cachedTokens: 512, costUsd: 0.0023 };

export const turn: SessionTurn = {
  turn: 1,
  agentVersion: 3,
  status: 'completed',
  stopReason: 'endTurn',
  error: null,
  startedAt: at('09:30:00.000'),
  endedAt: at('09:31:12.480'),
  usage,
  unavailableToolServers: [],
  toolsLeftOut: [],
  operations: [
    {
      operationId: 'op_01k9xq3v9a6m1d7w5z0e8r2kgc',
      kind: 'model',
      name: `anthropic/${claude}`,
      step: 1,
      status: 'succeeded',
      startedAt: at('09:30:00.020'),
      endedAt: at('09:30:01.910'),
      toolCallId: null,
      childSessionId: null,
      toolType: null,
      error: null,
      firstTokenAt: at('09:30:00.610'),
      attempts: [],
      usage: modelUsage,
      compaction: null,
    },
    {
      operationId: id('op'),
      kind: 'approval',
      name: 'refund',
      step: 1,
      status: 'approved',
      startedAt: at('09:30:01.910'),
      endedAt: at('09:31:10.000'),
      toolCallId: id('call'),
      childSessionId: null,
      toolType: 'http',
      error: null,
      firstTokenAt: null,
      attempts: [],
      usage: null,
      compaction: null,
    },
  ],
};

export const approval: Approval = {
  operationId: id('op'),
  toolCallId: id('call'),
  sessionId: id('ses'),
  agentId: id('agt'),
  environment: 'production',
  name: 'refund',
  input: refund,
  allowsSession: false,
  editedInput: null,
  status: 'pending',
  reason: null,
  by: null,
  decisions: [],
  progress: { approved: 0, required: 1 },
  refusal: null,
  resolvedBy: null,
  requestedAt: at('09:30:01.910'),
  resolvedAt: null,
  expiresAt: '2026-02-01T09:30:01.910Z',
};

/** The same approval, after Mara's decision. */
export const approved: Approval = {
  ...approval,
  status: 'approved',
  reason: 'Checked the order.',
  decisions: [
    { decision: 'approved', actor: decider, at: at('09:31:10.000'), reason: 'Checked the order.', scope: 'once' },
  ],
  progress: { approved: 1, required: 1 },
  resolvedBy: decider,
  resolvedAt: at('09:31:10.000'),
};

export const workerTurn: WorkerTurn = {
  workerTurnId: id('wtn'),
  sessionId: id('ses'),
  agentId: id('agt'),
  agentVersion: 3,
  environment: 'production',
  queue: 'support-agent',
  turn: 1,
  step: 1,
  cursor: 'turn_1:seq_1',
  instructions,
  messages: messages.slice(0, 1),
  tools: [
    {
      name: 'find_order',
      description: 'Finds an order.',
      inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
      client: false,
    },
  ],
  pendingCalls: [],
  outcomes: [],
  outputSchema: null,
  limits,
  showReasoning: false,
  showToolInput: false,
  metadata: {},
  endUser: null,
  leaseExpiresAt: at('09:30:30.000'),
  deadlineAt: null,
};

/** The first model call of the turn. */
export const operationDetails: OperationDetails = {
  ...turn.operations[0]!,
  sessionId: id('ses'),
  turn: 1,
  agentVersion: 3,
  prompt: {
    model: `anthropic/${claude}`,
    instructions,
    messages: messages.slice(0, 1).map(({ role, content }) => ({ role, content })),
    messagesLeftOut: 0,
    tools: [{ name: 'refund', description: 'Refunds an order.', inputSchema: { type: 'object' } }],
    settings: {},
    maxOutputTokens: null,
    outputSchema: null,
  },
  response: { content: messages[1]!.content, reasoning: null, stopReason: 'toolCalls' },
  input: null,
  output: null,
  request: {
    method: 'POST',
    url: 'https://api.anthropic.com/v1/messages',
    headers: [
      { name: 'content-type', value: 'application/json' },
      { name: 'x-api-key', value: '{{secrets.ANTHROPIC_API_KEY}}' },
    ],
    body: `{"model":"${claude}","messages":[{"role":"user","content":[{"type":"text","text":"Please refund order 1041."}]}]}`,
    secrets: [{ name: 'ANTHROPIC_API_KEY', shownAs: '{{secrets.ANTHROPIC_API_KEY}}' }],
  },
  received: null,
  approval: null,
  exact: true,
  notes: [],
};
