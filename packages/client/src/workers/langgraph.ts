/**
 * Runs the turns of a queue with a graph of LangGraph (`@langchain/langgraph`, or `createAgent` of `langchain`):
 *
 *     await client.workers.run({
 *       queue: 'refunds',
 *       onTurn: runAgent(({ tools }) => createReactAgent({ llm, tools })),
 *     });
 *
 * Its tools call through the turn, so each call is stored before it runs and is not made again after a restart. In the meantime
 * the graph waits in the tool. The graph needs no checkpointer: the transcript is its memory.
 */
import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import {
  AIMessage,
  type BaseMessage,
  type ContentBlock,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  type UsageMetadata,
} from '@langchain/core/messages';
import type { ChatGeneration, LLMResult } from '@langchain/core/outputs';
import { DynamicStructuredTool, type StructuredToolInterface } from '@langchain/core/tools';
import { toJsonSchema } from '@langchain/core/utils/json_schema';
import type { ClientTool } from '../types.generated.ts';
import type { ToolFunction } from './calls.ts';
import { TurnFailedError } from './errors.ts';
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
  type UserPart,
} from './for-models.ts';
import type { RunOptions } from './run.ts';
import type { Turn } from './turn.ts';

/** What the graph of a turn needs. */
export interface AgentSettings {
  /** The tools that the turn can call now. */
  tools: DynamicStructuredTool[];
}

/** A compiled graph whose state has `messages`. */
export interface Graph {
  stream(
    input: { messages: BaseMessage[] },
    // biome-ignore lint/suspicious/noExplicitAny: every graph has a type of its own for its options.
    options?: any,
  ): Promise<AsyncIterable<unknown>>;
}

/** An `onTurn` that runs the graph that `build` returns. The agent's instructions are the first message. */
export function runAgent(build: (settings: AgentSettings, turn: Turn) => Graph | Promise<Graph>): RunOptions['onTurn'] {
  return async (turn, { signal }) => {
    const guard = createResponseGuard(signal);
    try {
      const graph = await build({ tools: guardedTools(turn, guard) }, turn);
      const options = {
        streamMode: ['messages', 'updates'],
        // Otherwise their text arrives only when they end.
        subgraphs: true,
        signal: guard.signal,
        callbacks: [new ModelObserver(turn, guard)],
        // For a graph with a checkpointer. A thread of its own, because the messages are the whole transcript.
        configurable: { thread_id: `${turn.sessionId}:${turn.turn}:${crypto.randomUUID()}` },
        // The steps of a turn are limited by `maxStepsPerTurn`; each takes a graph several of its own.
        recursionLimit: 10 * turn.limits.maxStepsPerTurn + 25,
      };
      const stream = (await graph.stream({ messages: await messagesOf(turn) }, options)) as AsyncIterable<
        [unknown, 'messages', [BaseMessage, unknown]] | [unknown, 'updates', object]
      >;
      for await (const [, mode, data] of stream) {
        if (mode === 'updates') {
          if ('__interrupt__' in data) throw interrupted();
        } else if (data[0].type === 'ai') {
          // Not awaited: the text of a model call must all be here before its tool calls end the step.
          void turn.appendReasoning(reasoningIn(data[0]));
          if (data[0].text !== '') void turn.append(data[0].text);
        }
      }
    } catch (error) {
      // Thrown by interrupt() in a graph without a checkpointer.
      if ((error as { lc_error_code?: unknown } | null)?.lc_error_code === 'MISSING_CHECKPOINTER') throw interrupted();
      if (!guard.hasEndedRun) throw failureOf(error);
    }
    return guard.result();
  };
}

function reasoningIn(message: BaseMessage): string {
  return message.contentBlocks
    .map((block) => (block.type === 'reasoning' && typeof block.reasoning === 'string' ? block.reasoning : ''))
    .join('');
}

function interrupted(): TurnFailedError {
  const message = 'The graph called interrupt(). To ask a person, give a tool of the agent an approval.';
  return new TurnFailedError('worker_failed', message);
}

/** Reports the usage of each model call, and why it finished. */
class ModelObserver extends BaseCallbackHandler {
  override name = 'signalbox';
  /** Before the tool calls of the response end the step. */
  override awaitHandlers = true;
  readonly #turn: Turn;
  readonly #guard: ResponseGuard;

  constructor(turn: Turn, guard: ResponseGuard) {
    super();
    this.#turn = turn;
    this.#guard = guard;
  }

  override handleLLMEnd({ generations }: LLMResult): void {
    for (const { message, generationInfo } of generations.flat() as ChatGeneration[]) {
      const info = { ...message?.response_metadata, ...generationInfo };
      const reason = finishReasonOf(info);
      // OpenAI's formats always have one of them. Of other providers we don't know.
      this.#guard.finished(reason, info.model_provider === 'openai' && (reason ?? info.status) === undefined);
      const used = (message as { usage_metadata?: UsageMetadata } | undefined)?.usage_metadata;
      if (!used) continue;
      const { input_tokens: input, output_tokens: output, input_token_details: details } = used;
      reportUsage(this.#turn, { input, output, cached: details?.cache_read, cacheWrite: details?.cache_creation });
    }
  }
}

/** Each provider's package has its own place and name for it. */
function finishReasonOf(info: Record<string, unknown>): unknown {
  const { finish_reason, finishReason, stop_reason, done_reason, incomplete_details } = info;
  const incomplete = (incomplete_details as { reason?: unknown } | null | undefined)?.reason;
  return finish_reason ?? finishReason ?? stop_reason ?? done_reason ?? incomplete;
}

/** The agent's instructions and the transcript. */
export async function messagesOf(turn: Turn): Promise<BaseMessage[]> {
  const instructions = instructionsOf(turn);
  const messages = (await entriesOf(turn)).flatMap(toMessages);
  return instructions === '' ? messages : [new SystemMessage(instructions), ...messages];
}

function toMessages(entry: Entry): BaseMessage[] {
  const { messageId: id } = entry;
  if (entry.role === 'user') return [new HumanMessage({ id, content: entry.parts.map(toBlock) })];
  if (entry.role === 'assistant') {
    const calls = entry.calls.map(({ toolCallId, tool: name, input }) => {
      return { type: 'tool_call' as const, id: toolCallId, name, args: input as Record<string, unknown> };
    });
    return [new AIMessage({ id, content: entry.text, tool_calls: calls })];
  }
  return entry.results.map(({ toolCallId, tool: name, result: { text, isError } }) => {
    const status = isError ? ('error' as const) : ('success' as const);
    return new ToolMessage({ tool_call_id: toolCallId, name, content: text, status });
  });
}

function toBlock(part: UserPart): ContentBlock {
  if (part.type === 'text') return part;
  const { mediaType, filename } = part;
  return mediaType.startsWith('image/')
    ? { type: 'image_url', image_url: { url: dataUrl(part) } }
    : { type: 'file', mimeType: mediaType, data: dataUrl(part).split(',')[1]!, metadata: { filename } };
}

/** The tools that the turn can call now. Each call goes through the turn. Their results are text. */
export function toolsOf(turn: Turn): DynamicStructuredTool[] {
  return guardedTools(turn);
}

function guardedTools(turn: Turn, guard?: ResponseGuard): DynamicStructuredTool[] {
  return turn.tools.map(
    ({ name, description, inputSchema }) =>
      new DynamicStructuredTool({
        name,
        description,
        schema: { type: 'object', properties: {}, ...inputSchema },
        func: async (input, _, config) => {
          guard?.check();
          const { text, isError } = await callForModel(turn, name, input);
          const id: unknown = (config as { toolCall?: { id?: unknown } } | undefined)?.toolCall?.id;
          // Returned, not thrown: some graphs end when a tool throws.
          return isError && typeof id === 'string'
            ? new ToolMessage({ tool_call_id: id, name, content: text, status: 'error' })
            : text;
        },
      }),
  );
}

/** Tools of LangChain as `client` tools of an agent. Whether they need an approval is up to `policies`, by name. */
export async function definitionsOf(
  tools: readonly StructuredToolInterface[],
  policies: ToolPolicies = {},
): Promise<ClientTool[]> {
  checkPolicies(
    tools.map(({ name }) => name),
    policies,
  );
  return tools.map(({ name, description, schema }) =>
    definitionOf(name, description, toJsonSchema(schema as Parameters<typeof toJsonSchema>[0]), policies),
  );
}

/** The functions of these tools, for the `tools` of `client.workers.run`. */
export function functionsOf(tools: readonly StructuredToolInterface[]): Record<string, ToolFunction> {
  return Object.fromEntries(
    tools.map((tool): [string, ToolFunction] => [tool.name, (input, { signal }) => tool.invoke(input, { signal })]),
  );
}
