// A model that needs no key, because it follows a script. For a real one: `export const model = 'anthropic/claude-sonnet-5-5';`
import type { Model } from '@signalbox/client';

export const model: Model = {
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
};
