/**
 * Runs the turns of a queue with an agent of the AI SDK (`ai`):
 *
 *     await client.workers.run({
 *       queue: 'refunds',
 *       onTurn: runAgent((settings) => new ToolLoopAgent({ model: openai('gpt-6.1-terra'), ...settings })),
 *     });
 *
 * Its tools call through the turn, so each call is stored before it runs and is not made again after a restart. In the meantime
 * the agent waits in `execute`.
 */
import {
  type Agent,
  asSchema,
  isStepCount,
  type JSONValue,
  jsonSchema,
  type ModelMessage,
  type OnLanguageModelCallEndCallback,
  type StopCondition,
  type TextStreamPart,
  type ToolSet,
  tool,
} from 'ai';
import type { ClientTool } from '../types.generated.ts';
import type { ToolFunction } from './calls.ts';
import {
  callForModel,
  checkPolicies,
  definitionOf,
  type Entry,
  entriesOf,
  failureOf,
  instructionsOf,
  type ModelResult,
  reportUsage,
  resultOfFinish,
  type ToolPolicies,
} from './for-models.ts';
import type { RunOptions } from './run.ts';
import type { Turn } from './turn.ts';

/** What the agent of a turn needs: pass all of it to `ToolLoopAgent`. */
export interface AgentSettings {
  /** The agent's instructions, and what its `outputSchema` asks for. */
  instructions: string;
  /** The tools that the turn can call now. */
  tools: ToolSet;
  /** The turn's limit: `maxStepsPerTurn`. */
  // biome-ignore lint/suspicious/noExplicitAny: as in the AI SDK's own type of it.
  stopWhen: StopCondition<any, any>;
  /** Reports the usage of each model call. */
  onLanguageModelCallEnd: OnLanguageModelCallEndCallback;
  /** Does nothing: errors end the turn, and `onError` of `client.workers.run` gets them. */
  onError: () => void;
}

// biome-ignore lint/suspicious/noExplicitAny: an agent with any tools, context and output.
type AnyAgent = Agent<never, any, any, any>;

/** An `onTurn` that runs the agent that `build` returns. */
export function runAgent(
  build: (settings: AgentSettings, turn: Turn) => AnyAgent | Promise<AnyAgent>,
): RunOptions['onTurn'] {
  return async (turn, { signal }) => {
    try {
      const agent = await build(settingsOf(turn), turn);
      const result = await agent.stream({ messages: await messagesOf(turn), abortSignal: signal });
      for await (const part of result.stream) {
        // Not awaited: the text of a model call must all be here before its tool calls end the step.
        if (part.type === 'text-delta') void turn.append(part.text);
        if (part.type === 'reasoning-delta') void turn.appendReasoning(part.text);
        reportRan(turn, part);
        if (part.type === 'error') throw part.error;
      }
      return resultOfFinish(await result.finishReason);
    } catch (error) {
      throw failureOf(error);
    }
  };
}

/** What the provider ran itself, and its sources. Its calls have no `execute`. */
function reportRan(turn: Turn, part: TextStreamPart<ToolSet>): void {
  if (part.type === 'source') {
    if (part.sourceType === 'document') turn.source({ title: part.title });
    else if (/^https?:/i.test(part.url)) turn.source({ url: part.url, ...(part.title && { title: part.title }) });
  }
  if ((part.type !== 'tool-result' && part.type !== 'tool-error') || !part.providerExecuted) return;
  const { toolName: tool, input = null } = part;
  if (part.type === 'tool-result') turn.providerCall({ tool, input, output: withoutSealed(part.output ?? null) });
  else turn.providerCall({ tool, input, error: errorOf(part.error) });
}

/** At most 2,000 characters. */
function errorOf(error: unknown): string {
  const text = error instanceof Error ? error.message : typeof error === 'string' ? error : JSON.stringify(error);
  return (text || 'The call failed').slice(0, 2_000);
}

/** What a provider has encrypted is for itself. */
function withoutSealed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutSealed);
  const open = Object.entries(value).filter(([name]) => !/^encrypted/i.test(name));
  return Object.fromEntries(open.map(([name, inner]) => [name, withoutSealed(inner)]));
}

function settingsOf(turn: Turn): AgentSettings {
  return {
    instructions: instructionsOf(turn),
    tools: toolsOf(turn),
    stopWhen: isStepCount(turn.limits.maxStepsPerTurn),
    onLanguageModelCallEnd: ({ usage }) => {
      const { inputTokens: input, outputTokens: output, inputTokenDetails } = usage;
      const { cacheReadTokens: cached, cacheWriteTokens: cacheWrite } = inputTokenDetails;
      reportUsage(turn, { input, output, cached, cacheWrite });
    },
    onError() {},
  };
}

/** The transcript. */
export async function messagesOf(turn: Turn): Promise<ModelMessage[]> {
  return (await entriesOf(turn)).map(toMessage);
}

function toMessage(entry: Entry): ModelMessage {
  if (entry.role === 'user') {
    const content = entry.parts.map((part) => (part.type === 'text' ? part : { ...part, type: 'file' as const }));
    return { role: 'user', content };
  }
  if (entry.role === 'assistant') {
    const { text } = entry;
    const calls = entry.calls.map(({ toolCallId, tool: toolName, input }) => {
      return { type: 'tool-call' as const, toolCallId, toolName, input };
    });
    return { role: 'assistant', content: [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls] };
  }
  const results = entry.results.map(({ toolCallId, tool: toolName, result }) => {
    return { type: 'tool-result' as const, toolCallId, toolName, output: toOutput(result) };
  });
  return { role: 'tool', content: results };
}

function toOutput({ text, isError, output }: ModelResult) {
  if (isError) return { type: 'error-text' as const, value: text };
  if (output === undefined || typeof output === 'string') return { type: 'text' as const, value: text };
  return { type: 'json' as const, value: output as JSONValue };
}

/** The tools that the turn can call now. Each call goes through the turn. */
export function toolsOf(turn: Turn): ToolSet {
  return Object.fromEntries(
    turn.tools.map(({ name, description, inputSchema }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema({ type: 'object', properties: {}, ...inputSchema }),
        execute: async (input: unknown) => {
          const { text, isError, output } = await callForModel(turn, name, input);
          // The AI SDK makes an error for the model of it, and puts the class before the message.
          if (isError) throw new Error(text.replace(/^Error: /, ''));
          return output ?? text;
        },
      }),
    ]),
  );
}

/** Tools of the AI SDK as `client` tools of an agent. Whether they need an approval is up to `policies`, by name. */
export async function definitionsOf(tools: ToolSet, policies: ToolPolicies = {}): Promise<ClientTool[]> {
  checkPolicies(Object.keys(tools), policies);
  return await Promise.all(
    Object.entries(tools).map(async ([name, { description, inputSchema }]) =>
      definitionOf(
        name,
        typeof description === 'string' ? description : undefined,
        await asSchema(inputSchema).jsonSchema,
        policies,
      ),
    ),
  );
}

/** The functions of these tools, for the `tools` of `client.workers.run`. They get no `messages`. */
export function functionsOf(tools: ToolSet): Record<string, ToolFunction> {
  return Object.fromEntries(
    Object.entries(tools).flatMap(([name, { execute, inputSchema }]) => {
      if (!execute) return [];
      const run: ToolFunction = async (input, { toolCallId, signal }) => {
        const checked = await asSchema(inputSchema).validate?.(input);
        if (checked?.success === false) throw checked.error;
        const options = { toolCallId, messages: [], abortSignal: signal, context: {} };
        const output = await execute(checked ? checked.value : input, options as never);
        return await lastOf(output);
      };
      return [[name, run]];
    }),
  );
}

/** A tool can yield preliminary results; the last one counts. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown;
  for await (const one of output as AsyncIterable<unknown>) last = one;
  return last;
}
