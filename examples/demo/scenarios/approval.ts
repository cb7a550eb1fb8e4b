// An agent that makes refunds. Its tool has a side effect (it is a POST), so every call needs approval: the approver
// approves it, denies it, or approves it with another amount.
import type { Agent, Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

export async function approval(stage: Stage): Promise<Session> {
  const agent = await createRefundDesk(stage);
  const session = await stage.converse(agent, 'My order 1042 (42.50 EUR) arrived damaged. Please refund it.');
  row('refunds', stage.shop.accounts);
  return session;
}

export function createRefundDesk(stage: Stage): Promise<Agent> {
  return stage.createAgent({
    name: 'Refund desk',
    instructions: [
      'You are the refund desk of a small shop.',
      'Say in one or two sentences what you are about to do, then call refund_order once.',
      'When you have its result, tell the customer the result in one or two sentences.',
      'If the call was not allowed, say so and do not try again.',
    ].join('\n'),
    model: stage.model('refund-desk', [
      {
        text:
          'I am sorry that your order arrived damaged. I will refund the full price, ' +
          'and ask a colleague to approve it first.',
        tokenDelayMs: 50,
        toolCalls: [
          {
            name: 'refund_order',
            input: { orderId: '1042', amount: 42.5, currency: 'EUR', reason: 'arrived damaged' },
          },
        ],
      },
      { text: 'All done. {{lastToolResult}}', tokenDelayMs: 50 },
    ]),
    tools: [
      {
        type: 'http',
        name: 'refund_order',
        description: 'Refunds an order in full or in part.',
        inputSchema: {
          type: 'object',
          properties: {
            orderId: { type: 'string' },
            amount: { type: 'number', exclusiveMinimum: 0 },
            currency: { type: 'string', enum: ['EUR'] },
            reason: { type: 'string' },
          },
          required: ['orderId', 'amount', 'currency', 'reason'],
          additionalProperties: false,
        },
        request: {
          method: 'POST',
          url: `${stage.shop.url}/refunds`,
          body: { orderId: '{{input.orderId}}', amount: '{{input.amount}}', reason: '{{input.reason}}' },
        },
      },
    ],
  });
}
