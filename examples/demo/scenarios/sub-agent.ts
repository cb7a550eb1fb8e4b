// An agent whose tool is another agent. A call opens a child session and waits for it. The approval is requested in the
// child session; the parent continues with the child's final text.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';
import { createRefundDesk } from './approval.ts';

export async function subAgent(stage: Stage): Promise<Session> {
  const refundDesk = await createRefundDesk(stage);
  const frontDesk = await stage.createAgent({
    name: 'Front desk',
    instructions:
      'You are the front desk of a small shop. Use refund_desk for refunds, and tell it everything it needs to know.',
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
        description: 'Refunds an order. Give it the order, the amount and the reason.',
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
