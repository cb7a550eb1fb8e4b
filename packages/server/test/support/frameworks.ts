/** The same agent in each framework, with the adapters that run it. All call the server of `openai-server.ts`. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { tool as langChainTool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, tool as agentsTool, OpenAIProvider, setTracingDisabled } from '@openai/agents';
import type { ClientTool, RunOptions, ToolFunction } from '@signalbox/client';
import * as aiSdk from '@signalbox/client/workers/ai-sdk';
import * as langgraph from '@signalbox/client/workers/langgraph';
import * as openaiAgents from '@signalbox/client/workers/openai-agents';
import { tool as aiSdkTool, ToolLoopAgent } from 'ai';
import { z } from 'zod';

export interface Framework {
  name: string;
  /** The `onTurn` of an agent whose model is at `baseURL`. */
  onTurn(baseURL: string): RunOptions['onTurn'];
  /** A tool of the framework's own, `add`, and what the adapter makes of it. */
  ownTool(add: (a: number, b: number) => unknown): Promise<{
    definitions: ClientTool[];
    functions: Record<string, ToolFunction>;
    /** Fails if `policies` name a tool that is not there. */
    misspelt(): Promise<unknown>;
  }>;
}

const apiKey = 'none';
const input = z.object({ a: z.number(), b: z.number() });
const description = 'Adds two numbers.';
const policies = { add: { approval: 'always', effectful: true } } as const;
const misspelt = { ad: { approval: 'always' } } as const;

export const frameworks: readonly Framework[] = [
  {
    name: 'AI SDK',
    onTurn(baseURL) {
      const model = createOpenAICompatible({ name: 'test', baseURL, apiKey, includeUsage: true })('any');
      return aiSdk.runAgent((settings) => new ToolLoopAgent({ model, maxRetries: 0, ...settings }));
    },
    async ownTool(add) {
      const tools = {
        add: aiSdkTool({ description, inputSchema: input, execute: async ({ a, b }) => add(a, b) }),
      };
      return {
        definitions: await aiSdk.definitionsOf(tools, policies),
        functions: aiSdk.functionsOf(tools),
        misspelt: () => aiSdk.definitionsOf(tools, misspelt),
      };
    },
  },
  {
    name: 'LangGraph',
    onTurn(baseURL) {
      const llm = new ChatOpenAI({ model: 'any', apiKey, configuration: { baseURL }, maxRetries: 0 });
      return langgraph.runAgent(({ tools }) => createReactAgent({ llm, tools }));
    },
    async ownTool(add) {
      const tools = [langChainTool(async ({ a, b }) => add(a, b), { name: 'add', description, schema: input })];
      return {
        definitions: await langgraph.definitionsOf(tools, policies),
        functions: langgraph.functionsOf(tools),
        misspelt: () => langgraph.definitionsOf(tools, misspelt),
      };
    },
  },
  {
    name: 'OpenAI Agents',
    onTurn(baseURL) {
      setTracingDisabled(true);
      const provider = new OpenAIProvider({ baseURL, apiKey, useResponses: false });
      const model = provider.getModel('any');
      return openaiAgents.runAgent(async (settings) => new Agent({ name: 'Test', model: await model, ...settings }));
    },
    async ownTool(add) {
      const tools = [
        agentsTool({ name: 'add', description, parameters: input, execute: async ({ a, b }) => add(a, b) }),
      ];
      return {
        definitions: await openaiAgents.definitionsOf(tools, policies),
        functions: openaiAgents.functionsOf(tools),
        misspelt: () => openaiAgents.definitionsOf(tools, misspelt),
      };
    },
  },
];
