import type { CreateAgent } from '@signalbox/client';

/** The agent of the Getting started page. It needs no provider key and asks before it refunds. */
export const refundDesk: CreateAgent = {
  name: 'Refund desk',
  description: 'Created on the console’s Getting started page.',
  instructions:
    'You are the refund desk of a small shop. Say what you are about to do, then call refund_order once. When you have its result, tell the customer the result.',
  model: {
    provider: 'scripted',
    model: 'refund-desk',
    settings: {
      script: [
        {
          text: 'I am sorry that your order arrived damaged. I will refund the full price. A colleague has to confirm it first.',
          tokenDelayMs: 40,
          toolCalls: [{ name: 'refund_order', input: { orderId: '1042', amount: 42.5, currency: 'EUR' } }],
        },
        { text: 'Here is the result: {{lastToolResult}}', tokenDelayMs: 40 },
      ],
    },
  },
  tools: [
    {
      type: 'client',
      name: 'refund_order',
      description: 'Refunds a customer for an order.',
      effectful: true,
      inputSchema: {
        type: 'object',
        properties: {
          orderId: { type: 'string' },
          amount: { type: 'number', exclusiveMinimum: 0 },
          currency: { type: 'string', enum: ['EUR'] },
        },
        required: ['orderId', 'amount', 'currency'],
        additionalProperties: false,
      },
    },
  ],
  metadata: { template: 'first-minutes' },
};

export const firstMessage = 'My order 1042 (42.50 EUR) arrived damaged. Please refund it.';

/** Acts as the integrator's program: returns a result and moves no money. */
export function refund(input: unknown): string {
  const { amount, currency } = input as { amount: number; currency: string };
  return `${amount.toFixed(2)} ${currency} refunded. (The console ran the tool in place of your program. No money moved.)`;
}
