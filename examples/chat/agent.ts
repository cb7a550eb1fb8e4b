// The agent. The backend creates it when it first starts, and updates it when this file has changed.
import type { CreateAgent } from '@signalbox/client';
import { model } from './model.ts';

export const agent: CreateAgent = {
  name: 'Order desk',
  instructions: 'You help the customers of a small shop with their orders. Keep it short.',
  showReasoning: true,
  model,
  tools: [
    {
      type: 'client',
      name: 'cancel_order',
      description: 'Cancels an order that has not been shipped.',
      inputSchema: {
        type: 'object',
        properties: { order: { type: 'string' }, refund: { type: 'string' } },
        required: ['order', 'refund'],
      },
      // The customer decides, in the page.
      approval: { policy: 'always', by: { endUser: true } },
    },
  ],
};
