// A graph of LangGraph run by this program, on any server with OpenAI's chat completions API. Signalbox stores and streams its
// sessions, asks for approval of its refunds, and makes each refund once.
//
//   SIGNALBOX_API_KEY=sbk_… MODEL_BASE_URL=http://127.0.0.1:11434/v1 MODEL_NAME=qwen3 npm exec -c 'node examples/worker-langgraph.ts'
import './explain.ts';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Signalbox } from '@signalbox/client';
import { definitionsOf, functionsOf, runAgent } from '@signalbox/client/workers/langgraph';
import { z } from 'zod';
import { showSession } from './show-session.ts';

const { MODEL_BASE_URL, MODEL_NAME, MODEL_API_KEY = 'none' } = process.env;
const client = new Signalbox();
const llm = new ChatOpenAI({
  model: MODEL_NAME ?? 'qwen3',
  apiKey: MODEL_API_KEY,
  configuration: { baseURL: MODEL_BASE_URL ?? 'http://127.0.0.1:11434/v1' },
});

const ownTools = [
  tool(async ({ order }) => `Order ${order} was refunded.`, {
    name: 'refund',
    description: 'Refunds an order.',
    schema: z.object({ order: z.string() }),
  }),
];

const queue = 'refunds-langgraph';
const { agentId } = await client.agents.create({
  name: 'Refunds',
  model: { provider: 'worker', queue },
  instructions: 'You refund orders. Be brief.',
  tools: await definitionsOf(ownTools, { refund: { approval: 'always', effectful: true } }),
});

const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
const running = client.workers.run({
  queue,
  signal: stopping.signal,
  tools: functionsOf(ownTools),
  onTurn: runAgent(({ tools }) => createReactAgent({ llm, tools })),
});

await showSession(client, agentId, 'Please refund order 1017.');
stopping.abort();
await running;
