// The model requests three lookups in one step. They only read (each is a GET), so they need no approval, and they run in
// parallel. Whichever finishes first, the model gets the results in the order of its calls.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

export async function tools(stage: Stage): Promise<Session> {
  const { client, shop } = stage;
  const agent = await stage.createAgent({
    name: 'Order desk',
    instructions:
      'Look up every order that the customer names, all of them at once, and report the state of each in one sentence.',
    model: stage.model('order-desk', [
      {
        text: 'One moment, I will look up all three.',
        tokenDelayMs: 50,
        toolCalls: ['1042', '1043', '1044'].map((orderId) => ({ name: 'look_up_order', input: { orderId } })),
      },
      {
        text: 'Order 1042 was delivered, 1043 has shipped, and 1044 is being packed.',
        tokenDelayMs: 50,
      },
    ]),
    tools: [
      {
        type: 'http',
        name: 'look_up_order',
        description: 'Returns the state of an order.',
        inputSchema: { type: 'object', properties: { orderId: { type: 'string' } }, required: ['orderId'] },
        request: { method: 'GET', url: `${shop.url}/orders/{{input.orderId}}` },
      },
    ],
  });

  const session = await stage.converse(agent, 'Where are my orders 1042, 1043 and 1044?');

  row('lookups', `${shop.lookupsAtOnce} in parallel, as counted by the shop`);
  for await (const { role, content } of client.sessions.messages(session.sessionId)) {
    if (role !== 'tool') continue;
    const results = content.flatMap((part) =>
      part.type === 'tool_result' ? [part.error ?? orderOf(part.output)] : [],
    );
    row('transcript', `results in the order of the calls: ${results.join(', ')}`);
  }
  return session;
}

function orderOf(output: unknown): string {
  return (output as { orderId: string }).orderId;
}
