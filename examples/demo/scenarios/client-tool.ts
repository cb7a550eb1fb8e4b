// A tool that your own program runs, with data that never leaves it: the Session waits, and holds nothing while it does,
// until the program posts the result.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';

const stock: Record<string, number> = { apples: 12, pears: 0 };

export async function clientTool(stage: Stage): Promise<Session> {
  const agent = await stage.createAgent({
    name: 'Storekeeper',
    instructions: 'Say what is in stock. Look with count_stock before you answer.',
    model: stage.model('storekeeper', [
      {
        text: 'I will have a look.',
        tokenDelayMs: 50,
        toolCalls: [{ name: 'count_stock', input: { article: 'apples' } }],
      },
      { text: 'There are {{lastToolResult}} of them.', tokenDelayMs: 50 },
    ]),
    tools: [
      {
        type: 'client',
        name: 'count_stock',
        description: 'Says how many of an article are in stock.',
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
      // A program that was started again may see the call again; the same result again changes nothing.
      await stage.client.sessions.sendToolResult(sessionId, { toolCallId, output: stock[article] });
    },
  });
}
