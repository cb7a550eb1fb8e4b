// A tool that your own program runs, on data that Signalbox never sees. The session waits, without using any resources,
// until the program posts the result.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';

const stock: Record<string, number> = { apples: 12, pears: 0 };

export async function clientTool(stage: Stage): Promise<Session> {
  const agent = await stage.createAgent({
    name: 'Storekeeper',
    instructions: 'Answer questions about stock. Call count_stock first.',
    model: stage.model('storekeeper', [
      {
        text: 'Let me check.',
        tokenDelayMs: 50,
        toolCalls: [{ name: 'count_stock', input: { article: 'apples' } }],
      },
      { text: 'We have {{lastToolResult}} in stock.', tokenDelayMs: 50 },
    ]),
    tools: [
      {
        type: 'client',
        name: 'count_stock',
        description: 'Returns how many of an article are in stock.',
        inputSchema: {
          type: 'object',
          properties: { article: { type: 'string', enum: Object.keys(stock) } },
          required: ['article'],
        },
      },
    ],
  });

  return await stage.converse(agent, 'How many apples do you have?', {
    async onToolCall({ toolCallId, input }, sessionId) {
      const { article } = input as { article: string };
      // If the program restarts it may see the call again. Sending the same result twice is harmless.
      await stage.client.sessions.sendToolResult(sessionId, { toolCallId, output: stock[article] });
    },
  });
}
