// A tool that your own program runs: the agent calls it, the session waits, your program posts the result.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/client-tool.ts'
import './explain.ts';
import { Signalbox } from '@signalbox/client';

const client = new Signalbox();

const stock: Record<string, number> = { apples: 12, pears: 0 };

const agent = await client.agents.create({
  name: 'Storekeeper',
  model: {
    provider: 'scripted',
    model: 'storekeeper',
    settings: {
      script: [
        { text: 'Let me check.', toolCalls: [{ name: 'count_stock', input: { article: '{{input}}' } }] },
        { text: 'In stock: {{lastToolResult}}' },
      ],
    },
  },
  tools: [
    {
      type: 'client',
      name: 'count_stock',
      description: 'Returns how many of an article are in stock.',
      inputSchema: { type: 'object', properties: { article: { type: 'string' } }, required: ['article'] },
    },
  ],
});

const { sessionId } = await client.sessions.open({
  agentId: agent.agentId,
  environment: 'production',
  input: 'apples',
  closeOnIdle: true,
});

for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'tool.call' && chunk.tool === 'count_stock') {
      // If this program restarts it may see the call again. Sending the same result twice is harmless.
      const { toolCallId, input } = chunk;
      const count = stock[(input as { article: string }).article];
      await client.sessions.sendToolResult(
        sessionId,
        count === undefined ? { toolCallId, error: 'No such article.' } : { toolCallId, output: count },
      );
      process.stdout.write('\n');
    }
  }
}
process.stdout.write('\n');
