// The prompt of a model call, in the form that `@ai-sdk/*` providers accept.

import type {
  JSONValue,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ProviderTool,
  LanguageModelV4ToolResultOutput,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { MessagePart } from '@signalbox/contract';
import { JsonText } from '../../lib/json/json-text.ts';
import type { ModelCall } from '../model/model.ts';
import type { PromptRules } from '../model/prompt-rules.ts';
import type { Target } from '../model/targets.ts';
import { nameFor } from '../tools/names.ts';
import { toolRulesOf } from '../tools/rules.ts';
import { type SentTools, sentTools } from '../tools/tools.ts';
import { filesOf } from './file-parts.ts';
import { idsOf, withMarks } from './message-marks.ts';
import type { PromptFiles, PromptPart } from './prompt-files.ts';
import { createResponses } from './provider-data.ts';
import { validPrompt } from './valid-prompt.ts';

type Part<T extends MessagePart['type']> = Extract<MessagePart, { type: T }>;

export interface PromptOptions {
  /** Whether the provider accepts a response schema together with tools. */
  takesSchema: boolean;
  /** Whether a tool's result can have files. If not, they follow in a message of their own. */
  takesToolFiles: boolean;
  /** Where it goes. */
  target: Target;
  /** The provider's own search, if the call has it. */
  search?: LanguageModelV4ProviderTool | undefined;
  /** What that server refuses in a transcript. */
  rules: PromptRules;
  /** Marks where the prompt is cached, for a provider that caches only there. */
  cachePoint?: SharedV4ProviderOptions | undefined;
  /** Whether marks are in place of the messages (message-marks.ts). */
  isMarked?: boolean;
}

/** The transcript, tools and settings of a call. */
export function toCallOptions(call: ModelCall, files: PromptFiles, options: PromptOptions): LanguageModelV4CallOptions {
  const { takesSchema, target, cachePoint, search } = options;
  const { temperature, topP, seed, stopSequences, reasoning } = call.config.settings ?? {};
  const { maxOutputTokens } = call.limits;
  const { outputSchema } = call;
  // Providers require the schema's root to be an object.
  const isTold = takesSchema && outputSchema?.type === 'object';
  const sent = sentTools(target, call.tools);
  const prompt = toPrompt(call, isTold ? null : outputSchema, files, sent, options);
  const tools = toolsFor(call, sent, target);
  if (cachePoint) markCachePoints(prompt, tools, cachePoint);
  return {
    prompt,
    // The search is the last one: an error names a tool by its place.
    ...((tools.length > 0 || search) && { tools: [...tools, ...(search ? [search] : [])] }),
    ...(isTold && { responseFormat: { type: 'json', schema: outputSchema } }),
    ...(maxOutputTokens !== null && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(seed !== undefined && { seed }),
    ...(stopSequences !== undefined && { stopSequences }),
    ...(reasoning !== undefined && { reasoning }),
  };
}

/**
 * The call's tools. A transcript can have calls of tools that the agent no longer has, or that a fork's version does not have. Servers
 * accept that as long as there are any tools, but some refuse a transcript with calls in a request without tools.
 */
function toolsFor({ transcript }: ModelCall, sent: SentTools, target: Target): LanguageModelV4FunctionTool[] {
  // The last one may get a cache point.
  if (sent.definitions.length > 0) return sent.definitions.map((tool) => ({ ...tool }));
  // The tools that earlier turns called, so that the list stays the same within this one.
  const callsIn = (entries: ModelCall['transcript']) =>
    entries.flatMap(({ content }) => only(content, 'tool_call').filter(({ by }) => by === undefined));
  const before = callsIn(
    transcript.slice(
      0,
      Math.max(
        0,
        transcript.findLastIndex(({ role }) => role === 'user'),
      ),
    ),
  );
  const first = transcript.filter((entry) => callsIn([entry]).length > 0).slice(0, 1);
  const called = before.length > 0 ? before : callsIn(first);
  const names = new Set(called.map(({ tool }) => nameFor(target, tool)));
  const description = 'This tool is not available any more. Do not call it.';
  const inputSchema = { type: 'object' as const, properties: {} };
  return [...names]
    .slice(0, toolRulesOf(target).toolsMax)
    .map((name) => ({ type: 'function', name, description, inputSchema }));
}

/** Calls as the model wrote them: with the names that it knows. */
function withSentCalls(prompt: LanguageModelV4Message[], { sentCall }: SentTools): LanguageModelV4Message[] {
  return prompt.map((message) => {
    if (message.role === 'assistant') {
      const content = message.content.map((part) => {
        if (part.type !== 'tool-call' || part.providerExecuted) return part;
        const { name, input } = sentCall(part.toolName, part.input);
        return { ...part, toolName: name, input };
      });
      return { ...message, content };
    }
    if (message.role !== 'tool') return message;
    const content = message.content.map((part) =>
      part.type === 'tool-result' ? { ...part, toolName: sentCall(part.toolName, null).name } : part,
    );
    return { ...message, content };
  });
}

function toPrompt(
  call: ModelCall,
  askedSchema: Record<string, unknown> | null,
  files: PromptFiles,
  sent: SentTools,
  { takesToolFiles, rules, isMarked = false }: PromptOptions,
): LanguageModelV4Message[] {
  const { transcript } = call;
  const toolOf = new Map(
    transcript.flatMap(({ content }) => only(content, 'tool_call').map(({ toolCallId, tool }) => [toolCallId, tool])),
  );
  const responses = createResponses(call, rules);
  const instructions = [call.instructions, askFor(askedSchema)].filter((text) => text.trim() !== '').join('\n\n');
  const messages: LanguageModelV4Message[] = [{ role: 'system', content: instructions }];
  for (const entry of transcript) {
    const { role, content } = entry;
    const idAt = idsOf(entry);
    const add = (message: LanguageModelV4Message, idOf = idAt) =>
      messages.push(isMarked ? withMarks(message, idOf) : message);
    // A model's response can be empty.
    if (content.length === 0) continue;
    switch (role) {
      case 'user': {
        const parts = content.map((part) => toUserParts(part, files));
        const ids = parts.flatMap((some, at) => some.map(() => idAt(at)));
        add({ role, content: parts.flat() }, (at) => ids[at]);
        break;
      }
      case 'assistant':
        add(responses.messageOf(entry));
        break;
      case 'tool': {
        const results = only(content, 'tool_result');
        const inResults = takesToolFiles ? files : undefined;
        add({
          role,
          content: results.map((result) => ({
            type: 'tool-result' as const,
            toolCallId: result.toolCallId,
            toolName: toolOf.get(result.toolCallId) ?? '',
            output: withFiles(toOutput(result), result, inResults),
          })),
        });
        const returned = takesToolFiles ? [] : results.flatMap(filesOf);
        if (returned.length > 0) {
          const heading = { type: 'text' as const, text: 'The files that these tools returned:' };
          add({ role: 'user', content: [heading, ...returned.flatMap((file) => files.partsOf(file))] });
        }
        break;
      }
    }
  }
  return validPrompt(withSentCalls(messages, sent), rules, { ownIds: responses.ownIds, continues: call.isPaused });
}

/**
 * Three points, one less than Anthropic allows: the end of tools and instructions, which all sessions of the agent share; the end of
 * the previous request, which is in the cache; and the end of this one. A point of its own for the previous request is needed because
 * Anthropic looks only 20 blocks back from a point, and a step may add more.
 */
function markCachePoints(
  prompt: LanguageModelV4Message[],
  tools: LanguageModelV4FunctionTool[],
  cachePoint: SharedV4ProviderOptions,
): void {
  const shared = prompt[0]?.role === 'system' ? prompt[0] : tools.at(-1);
  const response = prompt.findLastIndex(({ role }) => role === 'assistant');
  for (const point of [shared, prompt[response - 1], prompt.at(-1)]) {
    if (point) point.providerOptions = cachePoint;
  }
}

function toUserParts(part: MessagePart, files: PromptFiles): PromptPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }];
  return part.type === 'file' ? files.partsOf(part) : [];
}

/** A tool's result with the content of the files that it names. */
function withFiles(
  output: Output,
  result: Part<'tool_result'>,
  files: PromptFiles | undefined,
): LanguageModelV4ToolResultOutput {
  const returned = files ? filesOf(result) : [];
  if (returned.length === 0) return output;
  const text = output.type === 'json' ? JSON.stringify(output.value) : output.value;
  return { type: 'content', value: [{ type: 'text', text }, ...returned.flatMap((file) => files!.partsOf(file))] };
}

function askFor(schema: Record<string, unknown> | null): string {
  return schema === null
    ? ''
    : `Your final response must be one JSON value that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
}

function only<T extends MessagePart['type']>(content: readonly MessagePart[], type: T): Part<T>[] {
  return content.filter((part): part is Part<T> => part.type === type);
}

function toOutput({ input, ...result }: Part<'tool_result'>): Output {
  const output = outputOf(result);
  if (input === undefined) return output;
  // The approver changed the input. With its own input in the transcript, the model would report a call that did not happen.
  const edited = `The approver changed the input of this call to ${JSON.stringify(input)}.`;
  return output.type === 'json'
    ? { type: 'text', value: `${edited} Its result: ${JSON.stringify(output.value)}` }
    : { ...output, value: `${edited} Its result: ${output.value}` };
}

type Output = Extract<LanguageModelV4ToolResultOutput, { type: 'text' | 'json' | 'error-text' }>;

function outputOf({ output, error, outcomeUnknown }: Omit<Part<'tool_result'>, 'input'>): Output {
  if (error !== undefined) return { type: 'error-text', value: `Error: ${error}` };
  if (outcomeUnknown) return { type: 'error-text', value: 'Error: the outcome of this call is unknown.' };
  // Providers write a value as its text.
  if (output instanceof JsonText) return { type: 'text', value: output.text };
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: (output ?? null) as JSONValue };
}
