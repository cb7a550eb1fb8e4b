// An agent that needs no key of a model provider, because it follows a script. For a real one, create an agent in the console with
// the same tool, and start with AGENT_ID=agt_….
import type { CreateAgent } from '@signalbox/client';

export const demoAgent: CreateAgent = {
  name: 'Order desk',
  instructions: 'You help the customers of a small shop with their orders. Keep it short.',
  showReasoning: true,
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
  model: {
    provider: 'scripted',
    model: 'demo',
    settings: {
      script: [
        {
          reasoning: 'The customer wants to cancel. Order 1017 has not been shipped, so all of it can be refunded.',
          text: 'Order 1017 is two espresso cups, packed but not shipped yet, so I can cancel it. You get the whole 48 euros back, on the card that you paid with. Shall I?',
          tokenDelayMs: 45,
          toolCalls: [{ name: 'cancel_order', input: { order: '1017', refund: '48.00 EUR' } }],
        },
        { text: '{{lastToolResult}} Is there anything else that I can do for you?', tokenDelayMs: 45 },
        {
          text: 'You wrote: “{{input}}”. I only follow a script, so this is all I can say. What is real is everything around me: reload this page while I write, pull the network cable, or restart the service. I continue in the middle of the sentence, and nothing is lost or shown twice.',
          tokenDelayMs: 45,
        },
      ],
    },
  },
};
