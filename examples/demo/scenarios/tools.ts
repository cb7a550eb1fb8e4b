// The model asks for three lookups in one step. They only read (each is a GET), so nobody is asked, and they run together.
// Their results come in any order; the model gets them in the order in which it asked.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

export async function tools(stage: Stage): Promise<Session> {
  const { client, shop } = stage;
  const agent = await stage.createAgent({
    name: 'Order desk',
    instructions:
      'Look up every order that the customer names, all of them at once, and say in a sentence each how it stands.',
    model: stage.model('order-desk', [
      {
        text: 'One moment, I look all three of them up.',
        tokenDelayMs: 50,
        toolCalls: ['1042', '1043', '1044'].map((orderId) => ({ name: 'look_up_order', input: { orderId } })),
      },
      {
        text: 'Order 1042 was delivered, 1043 is on its way, and 1044 is being packed.',
        tokenDelayMs: 50,
      },
    ]),
    tools: [
      {
        type: 'http',
        name: 'look_up_order',
        description: 'Says how an order stands.',
        inputSchema: { type: 'object', properties: { orderId: { type: 'string' } }, required: ['orderId'] },
        request: { method: 'GET', url: `${shop.url}/orders/{{input.orderId}}` },
      },
    ],
  });

  const session = await stage.converse(agent, 'Where are my orders 1042, 1043 and 1044?');

  row('lookups', `${shop.lookupsAtOnce} under way at once, as the shop counted`);
  for await (const { role, content } of client.sessions.messages(session.sessionId)) {
    if (role !== 'tool') continue;
    const results = content.flatMap((part) =>
      part.type === 'tool_result' ? [part.error ?? orderOf(part.output)] : [],
    );
    row('transcript', `has their results in the order asked: ${results.join(', ')}`);
  }
  return session;
}

function orderOf(output: unknown): string {
  return (output as { orderId: string }).orderId;
}
