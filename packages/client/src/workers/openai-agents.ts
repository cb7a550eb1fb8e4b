/**
 * Runs the turns of a queue with an agent of the OpenAI Agents SDK (`@openai/agents`):
 *
 *     await client.workers.run({
 *       queue: 'refunds',
 *       onTurn: runAgent((settings) => new Agent({ name: 'Refunds', model: 'gpt-6.1-terra', ...settings })),
 *     });
 *
 * Its tools call through the turn, so each call is stored before it runs and is not made again after a restart. In the meantime
 * the agent waits in the tool.
 */
import {
  type Agent,
  type AgentInputItem,
  type FunctionTool,
  invokeFunctionTool,
  ModelRefusalError,
  RunContext,
  run,
  tool,
} from '@openai/agents';
import type { ClientTool } from '../types.generated.ts';
import type { ToolFunction } from './calls.ts';
import {
  callForModel,
  checkPolicies,
  createResponseGuard,
  dataUrl,
  definitionOf,
  type Entry,
  entriesOf,
  failureOf,
  instructionsOf,
  type ResponseGuard,
  reportUsage,
  type ToolPolicies,
} from './for-models.ts';
import type { RunOptions } from './run.ts';
import type { Turn } from './turn.ts';

// biome-ignore lint/suspicious/noExplicitAny: a tool with any context, parameters and result.
type AnyTool = FunctionTool<any, any, any>;

/** What the agent of a turn needs: pass all of it to `Agent`. */
export interface AgentSettings {
  /** The agent's instructions, and what its `outputSchema` asks for. */
  instructions: string;
  /** The tools that the turn can call now. */
  tools: AnyTool[];
}

// biome-ignore lint/suspicious/noExplicitAny: an agent with any context and output.
type AnyAgent = Agent<any, any>;

/** An `onTurn` that runs the agent that `build` returns. */
export function runAgent(
  build: (settings: AgentSettings, turn: Turn) => AnyAgent | Promise<AnyAgent>,
): RunOptions['onTurn'] {
  return async (turn, { signal }) => {
    const guard = createResponseGuard(signal);
    try {
      const agent = await build({ instructions: instructionsOf(turn), tools: guardedTools(turn, guard) }, turn);
      const maxTurns = turn.limits.maxStepsPerTurn;
      const result = await run(agent, await messagesOf(turn), { stream: true, signal: guard.signal, maxTurns });
      let isChatCompletion = false;
      let finishReason: unknown;
      for await (const event of result) {
        if (event.type !== 'raw_model_stream_event') continue;
        const { data } = event;
        // Not awaited: the text of a model call must all be here before its tool calls end the step.
        if (data.type === 'output_text_delta') void turn.append(data.delta);
        if (data.type === 'model') {
          void turn.appendReasoning(reasoningIn(data.event));
          isChatCompletion ||= 'choices' in data.event;
          finishReason = finishReasonIn(data.event) ?? finishReason;
        }
        if (data.type === 'response_done') {
          // A response in OpenAI's other format says itself that it is complete.
          guard.finished(finishReason, isChatCompletion && finishReason === undefined);
          finishReason = undefined;
          const { inputTokens: input, outputTokens: output, inputTokensDetails } = data.response.usage;
          const cached = [inputTokensDetails ?? []].flat().map((details) => details.cached_tokens ?? 0);
          reportUsage(turn, { input, output, cached: cached.reduce((sum, tokens) => sum + tokens, 0) });
        }
      }
      await result.completed;
      if (result.error) throw result.error;
    } catch (error) {
      if (error instanceof ModelRefusalError) return { stopReason: 'refusal' };
      if (!guard.hasEndedRun) throw failureOf(error);
    }
    return guard.result();
  };
}

/** What a raw event has of the model's reasoning, in OpenAI's responses or in chat completions of servers that show it. */
function reasoningIn(event: unknown): string {
  const { type, delta, choices } = event as {
    type?: string;
    delta?: string;
    choices?: { delta?: { reasoning_content?: string | null } }[];
  };
  if (type === 'response.reasoning_summary_text.delta') return delta ?? '';
  return choices?.[0]?.delta?.reasoning_content ?? '';
}

/** The finish reason in a raw event of OpenAI's chat completions or responses. */
function finishReasonIn(event: unknown): unknown {
  const { choices, response } = event as {
    choices?: { finish_reason?: string | null }[];
    response?: { incomplete_details?: { reason?: string } | null };
  };
  return choices?.[0]?.finish_reason ?? response?.incomplete_details?.reason;
}

/** The transcript. */
export async function messagesOf(turn: Turn): Promise<AgentInputItem[]> {
  return (await entriesOf(turn)).flatMap(toItems);
}

function toItems(entry: Entry): AgentInputItem[] {
  const status = 'completed' as const;
  if (entry.role === 'user') {
    const content = entry.parts.map((part) => {
      if (part.type === 'text') return { type: 'input_text' as const, text: part.text };
      return part.mediaType.startsWith('image/')
        ? { type: 'input_image' as const, image: dataUrl(part) }
        : { type: 'input_file' as const, file: dataUrl(part), filename: part.filename };
    });
    return [{ type: 'message', role: 'user', content }];
  }
  if (entry.role === 'assistant') {
    const content = [{ type: 'output_text' as const, text: entry.text }];
    const said: AgentInputItem[] = entry.text === '' ? [] : [{ type: 'message', role: 'assistant', status, content }];
    const calls = entry.calls.map(({ toolCallId: callId, tool: name, input }): AgentInputItem => {
      return { type: 'function_call', callId, name, arguments: JSON.stringify(input), status };
    });
    return [...said, ...calls];
  }
  return entry.results.map(({ toolCallId: callId, tool: name, result: { text } }): AgentInputItem => {
    return { type: 'function_call_result', callId, name, status, output: { type: 'text', text } };
  });
}

/** The tools that the turn can call now. Each call goes through the turn. Their results are text. */
export function toolsOf(turn: Turn): AnyTool[] {
  return guardedTools(turn);
}

function guardedTools(turn: Turn, guard?: ResponseGuard): AnyTool[] {
  return turn.tools.map(({ name, description, inputSchema }) =>
    tool({
      name,
      description,
      // Strict mode accepts only a part of JSON Schema. The service checks the input.
      strict: false,
      parameters: parametersOf(inputSchema),
      execute: async (input) => {
        guard?.check();
        return (await callForModel(turn, name, input)).text;
      },
      // What arrives here ends the run.
      errorFunction: null,
    }),
  );
}

/** As it is: the type demands more than the SDK and its models need. */
function parametersOf(inputSchema: Record<string, unknown>) {
  return { type: 'object', properties: {}, required: [], ...inputSchema } as unknown as {
    type: 'object';
    properties: Record<string, never>;
    required: string[];
    additionalProperties: true;
  };
}

/** Tools of the Agents SDK as `client` tools of an agent. Whether they need an approval is up to `policies`, by name. */
export async function definitionsOf(tools: readonly AnyTool[], policies: ToolPolicies = {}): Promise<ClientTool[]> {
  checkPolicies(
    tools.map(({ name }) => name),
    policies,
  );
  return tools.map(({ name, description, parameters }) => definitionOf(name, description, parameters, policies));
}

/** The functions of these tools, for the `tools` of `client.workers.run`. */
export function functionsOf(tools: readonly AnyTool[]): Record<string, ToolFunction> {
  return Object.fromEntries(
    tools.map((tool): [string, ToolFunction] => [
      tool.name,
      (input, { signal }) =>
        invokeFunctionTool({ tool, runContext: new RunContext(), input: JSON.stringify(input), details: { signal } }),
    ]),
  );
}
