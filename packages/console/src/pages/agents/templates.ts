// Agents to start from.
import { modelServer, ownProviders } from '@signalbox/contract';
import { Cpu, FilePlus2, type LucideIcon, MessageSquareText, Network, ShieldCheck, Sparkles } from 'lucide-react';
import type { Definition } from './definition.ts';

export interface Template {
  id: string;
  name: string;
  about: string;
  icon: LucideIcon;
  group: keyof typeof templateGroups;
  /** What must be there before it responds: the name of a secret, or a sentence. */
  secret?: string;
  needs?: string;
  definition: Definition;
}

export const templateGroups = {
  try: 'Try without a model',
  model: 'Use a model',
  own: 'Start from nothing',
} as const;

const rest = { tools: [], limits: {}, outputSchema: null, metadata: {} };
const instructions = 'You help the people who write to you. Answer in plain words. If you don’t know, say so.';

export const templates: readonly Template[] = [
  {
    id: 'assistant',
    name: 'Echo assistant',
    about: 'Repeats what you write, from a script. For a first look and for tests.',
    icon: MessageSquareText,
    group: 'try',
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
    name: 'Refund desk',
    about: 'Calls a tool that needs an approval, then waits for your program’s result. The model is a script.',
    icon: ShieldCheck,
    group: 'try',
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
  ...ownProviders.map(
    ({ name: provider, label, exampleModel, keyName }): Template => ({
      id: provider,
      name: `${label} assistant`,
      about: `Starts with ${exampleModel}. Choose another model, add tools, write instructions.`,
      icon: Sparkles,
      group: 'model',
      secret: keyName,
      definition: {
        name: 'Assistant',
        description: '',
        model: { provider, model: exampleModel },
        instructions,
        ...rest,
      },
    }),
  ),
  {
    id: 'ollama',
    name: 'Another model server',
    about: 'Ollama, vLLM, OpenRouter, Groq, a gateway: any server with OpenAI’s chat completions API.',
    icon: Network,
    group: 'model',
    needs: 'A local address must be in the operator’s SIGNALBOX_EGRESS_ALLOW',
    definition: {
      name: 'Local assistant',
      description: '',
      model: { provider: 'openai-compatible', model: 'llama3.2', baseUrl: modelServer('ollama')!.baseUrl },
      instructions,
      ...rest,
    },
  },
  {
    id: 'worker',
    name: 'Your own program',
    about: 'Your program runs the turns, with any framework. Signalbox keeps the sessions, approvals and webhooks.',
    icon: Cpu,
    group: 'own',
    needs: 'Needs a program that claims turns from a queue',
    definition: {
      name: 'Assistant',
      description: '',
      model: { provider: 'worker', queue: 'assistant' },
      instructions: '',
      ...rest,
    },
  },
  {
    id: 'empty',
    name: 'Blank agent',
    about: 'An empty form, for a definition of your own.',
    icon: FilePlus2,
    group: 'own',
    definition: {
      name: '',
      description: '',
      model: { provider: 'anthropic', model: '' },
      instructions: '',
      ...rest,
    },
  },
];
