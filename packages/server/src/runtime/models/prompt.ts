// What a provider's model is told, in the form that `@ai-sdk/*` providers take.

import type {
  JSONValue,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider';
import type { MessagePart } from '@signalbox/contract';
import type { ModelCall } from './model.ts';

type Part<T extends MessagePart['type']> = Extract<MessagePart, { type: T }>;

/** The transcript, tools and settings of a call. */
export function toCallOptions(call: ModelCall): LanguageModelV4CallOptions {
  const { temperature, topP, seed, stopSequences } = call.config.settings ?? {};
  const { maxOutputTokens } = call.limits;
  return {
    prompt: toPrompt(call),
    ...(call.tools.length > 0 && { tools: call.tools.map(toTool) }),
    ...(maxOutputTokens !== null && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(seed !== undefined && { seed }),
    ...(stopSequences !== undefined && { stopSequences }),
  };
}

function toPrompt({ instructions, transcript }: ModelCall): LanguageModelV4Message[] {
  const toolOf = new Map(
    transcript.flatMap(({ content }) => only(content, 'tool_call').map(({ toolCallId, tool }) => [toolCallId, tool])),
  );
  const messages: LanguageModelV4Message[] = instructions === '' ? [] : [{ role: 'system', content: instructions }];
  for (const { role, content } of transcript) {
    // A model may answer nothing at all; providers refuse a message that holds nothing.
    if (content.length === 0) continue;
    switch (role) {
      case 'user':
        messages.push({ role, content: only(content, 'text').map(({ text }) => ({ type: 'text', text })) });
        break;
      case 'assistant':
        messages.push({
          role,
          content: [
            ...only(content, 'text').map(({ text }) => ({ type: 'text' as const, text })),
            ...only(content, 'tool_call').map(({ toolCallId, tool, input }) => ({
              type: 'tool-call' as const,
              toolCallId,
              toolName: tool,
              input: toArguments(input),
            })),
          ],
        });
        break;
      case 'tool':
        messages.push({
          role,
          content: only(content, 'tool_result').map((result) => ({
            type: 'tool-result' as const,
            toolCallId: result.toolCallId,
            toolName: toolOf.get(result.toolCallId) ?? '',
            output: toOutput(result),
          })),
        });
        break;
    }
  }
  return messages;
}

function only<T extends MessagePart['type']>(content: readonly MessagePart[], type: T): Part<T>[] {
  return content.filter((part): part is Part<T> => part.type === type);
}

/** Servers refuse a transcript whose calls have no object as their arguments; what a model wrote instead is shown in one. */
function toArguments(input: unknown): unknown {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { invalid: input };
}

function toOutput({ output, error, outcomeUnknown }: Part<'tool_result'>): LanguageModelV4ToolResultOutput {
  if (error !== undefined) return { type: 'error-text', value: `Error: ${error}` };
  if (outcomeUnknown) return { type: 'error-text', value: 'Error: the outcome of this call is unknown.' };
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: (output ?? null) as JSONValue };
}

function toTool({ name, description, inputSchema }: ModelCall['tools'][number]): LanguageModelV4FunctionTool {
  // Providers insist on the type that the contract lets people leave out.
  return { type: 'function', name, description, inputSchema: { type: 'object', ...inputSchema } };
}
