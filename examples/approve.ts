// The approvals inbox: lists what is pending across all sessions and decides on behalf of one of your users, here with a
// smaller amount than the agent asked for.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/approve.ts'
import './explain.ts';
import { type Approval, Signalbox } from '@signalbox/client';

const client = new Signalbox();

interface Refund {
  order: string;
  euros: number;
}

const agent = await client.agents.create({
  name: 'Support',
  model: {
    provider: 'scripted',
    model: 'support',
    settings: {
      script: [
        { text: 'I will ask for approval.', toolCalls: [{ name: 'refund', input: { order: '{{input}}', euros: 90 } }] },
        { text: 'Done: {{lastToolResult}}' },
      ],
    },
  },
  tools: [
    {
      type: 'client',
      name: 'refund',
      description: 'Refunds an order in full or in part.',
      inputSchema: {
        type: 'object',
        properties: { order: { type: 'string' }, euros: { type: 'number', exclusiveMinimum: 0 } },
        required: ['order', 'euros'],
      },
      // Refunds below 50 euros run without approval.
      approval: { when: { properties: { euros: { minimum: 50 } } } },
    },
  ],
});

const { sessionId } = await client.sessions.open({
  agentId: agent.agentId,
  environment: 'production',
  input: '1017',
  closeOnIdle: true,
});

for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'session.status' && chunk.waitingFor?.type === 'approval') await workThroughInbox();
    if (chunk.type === 'tool.call' && chunk.tool === 'refund') {
      // This is the approved input.
      const { order, euros } = chunk.input as Refund;
      const output = `${euros} euros for order ${order}`;
      await client.sessions.sendToolResult(sessionId, { toolCallId: chunk.toolCallId, output });
    }
  }
}
process.stdout.write('\n');

/** Decides everything that is pending, oldest first. If two programs do this at once, the first decision on each approval wins. */
async function workThroughInbox(): Promise<void> {
  process.stdout.write('\n');
  for await (const approval of client.approvals.list({ status: 'pending' })) {
    // Leave the approvals of other agents to others.
    if (approval.agentId === agent.agentId) await decide(approval);
  }
}

async function decide({ operationId, name, input }: Approval): Promise<void> {
  const { order, euros } = input as Refund;
  process.stdout.write(`${name}: ${euros} euros for order ${order}?\n`);
  // An edited input replaces the agent's as a whole. The service checks it against the tool's schema.
  const { editedInput, resolvedBy } = await client.approvals.approve(operationId, {
    input: { order, euros: euros / 2 },
    reason: 'Half the price is enough.',
    onBehalfOf: 'maria@example.com',
  });
  process.stdout.write(`${resolvedBy?.onBehalfOf} approved ${JSON.stringify(editedInput)}\n`);
}
