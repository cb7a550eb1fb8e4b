// Agents to begin from.
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
const instructions = 'You help the people who write to you. Answer in plain words, and say so where you do not know.';

export const templates: readonly Template[] = [
  {
    id: 'assistant',
    name: 'An assistant, scripted',
    about: 'Answers by a script: no model, no key and no network. To see how a Session goes, and for tests.',
    definition: {
      name: 'Assistant',
      description: 'Answers by a script.',
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
    name: 'A refund desk, scripted',
    about:
      'Wants to refund an order and waits until a person has approved it. Then your program does it: the tool is its own.',
    definition: {
      name: 'Refund desk',
      description: 'Refunds orders, each after a person has approved it.',
      model: {
        provider: 'scripted',
        model: 'refunds',
        settings: {
          script: [
            {
              text: 'I am going to refund 49.00 for order 1042.',
              toolCalls: [{ name: 'refund_order', input: { orderId: '1042', cents: 4900 } }],
            },
            { text: 'This came of it: {{lastToolResult}}' },
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
    name: 'A model on your own machine',
    about:
      'Ollama, or anything else that speaks OpenAI’s chat completions. The operator must allow its address (SIGNALBOX_EGRESS_ALLOW).',
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
    name: `A model of ${label}`,
    about: `Needs ${label}’s key: as the secret ${keyName} of the Environment that its Sessions run in.`,
    definition: { name: 'Assistant', description: '', model: { provider, model: exampleModel }, instructions, ...rest },
  })),
  {
    id: 'empty',
    name: 'From nothing',
    about: 'An empty form.',
    definition: {
      name: '',
      description: '',
      model: { provider: 'anthropic', model: '' },
      instructions: '',
      ...rest,
    },
  },
];
