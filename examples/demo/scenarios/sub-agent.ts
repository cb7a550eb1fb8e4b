// An Agent whose tool is another Agent. A call of it opens a Session of its own, a child, and waits for it. What the child
// does is asked about in the child: the person decides on its refund, and the parent goes on with what the child says.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';
import { createRefundDesk } from './approval.ts';

export async function subAgent(stage: Stage): Promise<Session> {
  const refundDesk = await createRefundDesk(stage);
  const frontDesk = await stage.createAgent({
    name: 'Front desk',
    instructions:
      'You are the front desk of a small shop. Refunds are the business of refund_desk: tell it all it needs to know.',
    model: stage.model('front-desk', [
      {
        text: 'I am putting you through to our refund desk.',
        tokenDelayMs: 50,
        toolCalls: [
          {
            name: 'refund_desk',
            input: { input: 'Order 1042 (42.50 EUR) arrived damaged; the customer wants a refund.' },
          },
        ],
      },
      { text: 'The refund desk says: {{lastToolResult}}', tokenDelayMs: 50 },
    ]),
    tools: [
      {
        type: 'agent',
        name: 'refund_desk',
        description: 'Refunds an order. It needs the order, the amount and the reason.',
        agentId: refundDesk.agentId,
      },
    ],
  });

  const session = await stage.converse(frontDesk, 'My order 1042 (42.50 EUR) arrived damaged. Please refund it.');

  const { data: children } = await stage.client.sessions.list({ parentSessionId: session.sessionId });
  row(
    'children',
    `${children.length}: ${children.map(({ sessionId, status }) => `${sessionId} ${status}`).join(', ')}`,
  );
  row('refunds', stage.shop.accounts);
  return session;
}
