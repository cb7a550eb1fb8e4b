// An example of each resource for authors of agents.
import { modelFacts, providerFacts } from '@signalbox/contract';

const { exampleModel } = providerFacts.openai.own;

export const authoringExamples = {
  ModelList: {
    models: [
      {
        model: exampleModel,
        displayName: null,
        ...modelFacts({ provider: 'openai', model: exampleModel }),
        prices: {
          inputUsd: 1,
          cachedInputUsd: 0.05,
          cacheWriteInputUsd: 1.25,
          outputUsd: 5,
          tiers: [{ aboveInputTokens: 272_000, inputUsd: 2, outputUsd: 7.5 }],
        },
        endsAt: null,
        replacement: null,
      },
    ],
    problem: null,
    listedAt: '2026-01-31T09:30:00.000Z',
    pricesDate: '2026-01-17',
  },
  ToolTest: {
    request: {
      method: 'GET',
      url: 'https://shop.example.com/orders/1041',
      headers: [['Authorization', 'Bearer [secret SHOP_TOKEN]']],
      body: null,
    },
    response: { status: 200, headers: [['content-type', 'application/json']], bytes: 38 },
    output: { orderId: '1041', status: 'delivered' },
    durationMs: 84,
  },
  McpToolList: {
    tools: [
      {
        name: 'find_customer',
        offeredAs: 'crm__find_customer',
        description: 'Finds a customer by email address.',
        inputSchema: { type: 'object', properties: { email: { type: 'string' } }, required: ['email'] },
        needsApproval: false,
      },
    ],
    leftOut: [],
    problem: null,
  },
};
