// An example of each resource for authors of agents.

export const authoringExamples = {
  ModelList: {
    models: [
      {
        model: 'gpt-5',
        displayName: null,
        contextTokens: 400_000,
        input: ['image', 'pdf'],
        price: { inputUsd: 1.25, outputUsd: 10 },
      },
    ],
    problem: null,
    listedAt: '2026-01-31T09:30:00.000Z',
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
