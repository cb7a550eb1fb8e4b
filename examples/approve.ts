// The inbox of approvals: what waits for a person over all Sessions, and how a program decides on behalf of its own user, here
// with another input than the Agent asked for.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/approve.ts'
import { type Approval, Signalbox } from '@signalbox/client';

const client = new Signalbox({
  apiKey: process.env.SIGNALBOX_API_KEY ?? '',
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:4500',
});

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
        { text: 'I will ask.', toolCalls: [{ name: 'refund', input: { order: '{{input}}', euros: 90 } }] },
        { text: 'Done: {{lastToolResult}}' },
      ],
    },
  },
  tools: [
    {
      type: 'client',
      name: 'refund',
      description: 'Pays back what an order cost, or a part of it.',
      inputSchema: {
        type: 'object',
        properties: { order: { type: 'string' }, euros: { type: 'number', exclusiveMinimum: 0 } },
        required: ['order', 'euros'],
      },
      // Whatever costs less than 50 euros runs unasked.
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
      // With the input that a person agreed to.
      const { order, euros } = chunk.input as Refund;
      const output = `${euros} euros for order ${order}`;
      await client.sessions.sendToolResult(sessionId, { toolCallId: chunk.toolCallId, output });
    }
  }
}
process.stdout.write('\n');

/** Everything that waits, the oldest first. Where two do this at once, the first decision on each approval wins. */
async function workThroughInbox(): Promise<void> {
  process.stdout.write('\n');
  for await (const approval of client.approvals.list({ status: 'pending' })) {
    // What other Agents ask for is for others to decide.
    if (approval.agentId === agent.agentId) await decide(approval);
  }
}

async function decide({ operationId, name, input }: Approval): Promise<void> {
  const { order, euros } = input as Refund;
  process.stdout.write(`${name}: ${euros} euros for order ${order}?\n`);
  // The whole input, in the place of the Agent's; the service checks it against the tool's schema.
  const { editedInput, resolvedBy } = await client.approvals.approve(operationId, {
    input: { order, euros: euros / 2 },
    reason: 'Half of it',
    onBehalfOf: 'maria@example.com',
  });
  process.stdout.write(`${resolvedBy?.onBehalfOf} agrees to ${JSON.stringify(editedInput)}\n`);
}
