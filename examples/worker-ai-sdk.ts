// An agent built with the AI SDK and run by this program, on any server with OpenAI's chat completions API. Signalbox stores and
// streams its sessions, asks for approval of its refunds, and makes each refund once.
//
//   SIGNALBOX_API_KEY=sbk_… MODEL_BASE_URL=http://127.0.0.1:11434/v1 MODEL_NAME=qwen3 npm exec -c 'node examples/worker-ai-sdk.ts'
import './explain.ts';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Signalbox } from '@signalbox/client';
import { definitionsOf, functionsOf, runAgent } from '@signalbox/client/workers/ai-sdk';
import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { showSession } from './show-session.ts';

const { MODEL_BASE_URL, MODEL_NAME, MODEL_API_KEY = 'none' } = process.env;
const client = new Signalbox();
const provider = createOpenAICompatible({
  name: 'example',
  baseURL: MODEL_BASE_URL ?? 'http://127.0.0.1:11434/v1',
  apiKey: MODEL_API_KEY,
  includeUsage: true,
});
const model = provider(MODEL_NAME ?? 'qwen3');

const tools = {
  refund: tool({
    description: 'Refunds an order.',
    inputSchema: z.object({ order: z.string() }),
    execute: async ({ order }) => `Order ${order} was refunded.`,
  }),
};

const queue = 'refunds-ai-sdk';
const { agentId } = await client.agents.create({
  name: 'Refunds',
  model: { provider: 'worker', queue },
  instructions: 'You refund orders. Be brief.',
  tools: await definitionsOf(tools, { refund: { approval: 'always', effectful: true } }),
});

const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
const running = client.workers.run({
  queue,
  signal: stopping.signal,
  tools: functionsOf(tools),
  onTurn: runAgent((settings) => new ToolLoopAgent({ model, ...settings })),
});

await showSession(client, agentId, 'Please refund order 1017.');
stopping.abort();
await running;
