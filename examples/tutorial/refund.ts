// The first program of docs/tutorial.md: an agent asks before it makes a refund, and you decide.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/tutorial/refund.ts'
import '../explain.ts';
import { createInterface } from 'node:readline/promises';
import { Signalbox } from '@signalbox/client';

const client = new Signalbox();
const terminal = createInterface(process.stdin, process.stdout);

const agent = await client.agents.create({
  name: 'Support',
  instructions: 'You help the customers of a shop. Refund what arrived damaged.',
  // A script in place of a model: it asks for the refund, then reports the result.
  model: {
    provider: 'scripted',
    model: 'support',
    settings: {
      script: [
        { text: 'I will refund that.', toolCalls: [{ name: 'refund', input: { order: '1017', euros: 42 } }] },
        { text: 'The result: {{lastToolResult}}' },
      ],
    },
  },
  tools: [
    {
      type: 'client', // this program runs it
      name: 'refund',
      description: 'Refunds an order.',
      inputSchema: {
        type: 'object',
        properties: { order: { type: 'string' }, euros: { type: 'number' } },
        required: ['order', 'euros'],
      },
      approval: 'always',
    },
  ],
});

const { sessionId } = await client.sessions.open({
  agentId: agent.agentId,
  environment: 'production',
  input: 'Order 1017 arrived broken.',
  closeOnIdle: true,
});

for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'approval.requested') {
      const reply = await terminal.question(`\n${chunk.name} ${JSON.stringify(chunk.input)}? (y/n) `);
      if (reply === 'y') await client.approvals.approve(chunk.operationId);
      else await client.approvals.deny(chunk.operationId, { reason: 'Ask for a photo first.' });
    }
    if (chunk.type === 'tool.call' && chunk.tool === 'refund') {
      // Approved. A real program would call its payment service here, with chunk.toolCallId as its idempotency key.
      await client.sessions.sendToolResult(sessionId, { toolCallId: chunk.toolCallId, output: 'refunded 42 euros' });
    }
  }
}
terminal.close();
process.stdout.write('\n');
