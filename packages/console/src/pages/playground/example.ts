// The first look: two columns that differ in what a mocked tool returns. The scripted model needs no key.
import { emptyMessage, newColumn, type Playground } from './state.ts';

const script = [
  {
    text: 'I look for order **1042** first.',
    toolCalls: [{ name: 'find_order', input: { orderId: '1042' } }],
    tokenDelayMs: 15,
  },
  { text: 'This is what I found:\n\n```json\n{{lastToolResult}}\n```', tokenDelayMs: 15 },
];

const definition = {
  name: 'Order desk',
  description: '',
  model: { provider: 'scripted', model: 'orders', settings: { script } },
  instructions: 'You answer questions about orders. Look for the order before you answer.',
  tools: [
    {
      type: 'client',
      name: 'find_order',
      description: 'Finds an order by its number.',
      inputSchema: { type: 'object', properties: { orderId: { type: 'string' } }, required: ['orderId'] },
    },
  ],
  limits: {},
  outputSchema: null,
  metadata: {},
};

export function example(): Playground {
  const mocked = (kind: 'output' | 'error', text: string) =>
    newColumn(definition, { tools: { find_order: { use: 'mock', results: [{ kind, text }], keepsApproval: false } } });
  return {
    columns: [
      mocked('output', '{\n  "status": "shipped",\n  "arrives": "tomorrow"\n}'),
      mocked('error', 'There is no order 1042.'),
    ],
    messages: [{ ...emptyMessage, text: 'Where is my order 1042?' }],
    environment: null,
    origin: null,
    isSetupHidden: false,
  };
}

export const blank = {
  name: 'New agent',
  description: '',
  model: { provider: 'anthropic', model: '' },
  instructions: '',
  tools: [],
  limits: {},
  outputSchema: null,
  metadata: {},
};
