// Agents to start from.
import { ownProviders } from '@signalbox/contract';
import type { ReactNode } from 'react';
import type { Definition } from './definition.ts';

export interface Template {
  id: string;
  name: string;
  about: ReactNode;
  definition: Definition;
}

const rest = { tools: [], limits: {}, outputSchema: null, metadata: {} };
const instructions = 'You help the people who write to you. Answer in plain words. If you don’t know, say so.';

export const templates: readonly Template[] = [
  {
    id: 'assistant',
    name: 'Scripted assistant',
    about: 'Responds from a script: no model, no API key, no network. For a first look and for tests.',
    definition: {
      name: 'Assistant',
      description: 'Responds from a script.',
      model: {
        provider: 'scripted',
        model: 'assistant',
        settings: { script: [{ text: 'You said: {{input}}', tokenDelayMs: 40 }] },
      },
      instructions,
      ...rest,
    },
  },
  {
    id: 'refunds',
    name: 'Scripted refund desk',
    about:
      'Asks to refund an order and waits for approval. Your program then runs the refund, because it is a client tool.',
    definition: {
      name: 'Refund desk',
      description: 'Refunds orders. Each refund needs approval.',
      model: {
        provider: 'scripted',
        model: 'refunds',
        settings: {
          script: [
            {
              text: 'I am going to refund 49.00 for order 1042.',
              toolCalls: [{ name: 'refund_order', input: { orderId: '1042', cents: 4900 } }],
            },
            { text: 'The result: {{lastToolResult}}' },
          ],
        },
      },
      instructions: 'You refund orders. Say what you are going to do before you do it.',
      ...rest,
      tools: [
        {
          type: 'client',
          name: 'refund_order',
          description: 'Refunds an order, in cents.',
          inputSchema: {
            type: 'object',
            properties: { orderId: { type: 'string' }, cents: { type: 'integer', minimum: 1 } },
            required: ['orderId', 'cents'],
          },
          effectful: true,
          approval: 'always',
        },
      ],
    },
  },
  {
    id: 'ollama',
    name: 'Local model',
    about:
      'Ollama, or another server with an OpenAI-compatible chat completions API. The operator must allow its address (SIGNALBOX_EGRESS_ALLOW).',
    definition: {
      name: 'Local assistant',
      description: '',
      model: { provider: 'openai-compatible', model: 'llama3.2', baseUrl: 'http://localhost:11434/v1' },
      instructions,
      ...rest,
    },
  },
  ...ownProviders.map(({ name: provider, label, exampleModel, keyName }) => ({
    id: provider,
    name: label,
    about: `Needs an API key of ${label}, in the secret ${keyName} of each environment that runs it.`,
    definition: { name: 'Assistant', description: '', model: { provider, model: exampleModel }, instructions, ...rest },
  })),
  {
    id: 'empty',
    name: 'Blank agent',
    about: 'Start with an empty form.',
    definition: {
      name: '',
      description: '',
      model: { provider: 'anthropic', model: '' },
      instructions: '',
      ...rest,
    },
  },
];
