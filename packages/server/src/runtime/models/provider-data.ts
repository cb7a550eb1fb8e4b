// What a provider wants to see again with the next call: the order of an answer's parts, its reasoning, and the signatures and
// seals that it has attached to them. The transcript knows text and tool calls alone; from both together the answer is put
// together again as the provider gave it.
//
// It is of use to the model that made it and to no other, so it names that model. Reasoning goes back within its turn, where
// providers insist on it between tool calls. After that they make no use of it, or, worse, check that nothing before it has
// changed since (instructions, tools), which here it may from turn to turn.
import type { LanguageModelV4Message, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { MessagePart } from '@signalbox/contract';
import type { ModelCall, ModelEntry } from './model.ts';

export interface ProviderData {
  readonly provider: string;
  readonly model: string;
  readonly parts: readonly DataPart[];
}

export type DataPart = { metadata?: SharedV4ProviderMetadata } & (
  | { type: 'reasoning'; text: string }
  /** So many characters of the transcript's text, in order. */
  | { type: 'text'; length: number }
  /** The transcript's next tool call. */
  | { type: 'toolCall' }
);

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];
type ToolCall = Extract<MessagePart, { type: 'tool_call' }>;

/** An answer as its provider gave it. `isOfThisTurn`: its reasoning belongs to it. */
export function toAssistantParts(
  { content, providerData }: ModelEntry,
  { provider, model }: ModelCall['config'],
  isOfThisTurn: boolean,
): AssistantPart[] {
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const calls = content.filter((part) => part.type === 'tool_call').map(toToolCall);
  const parts = isProviderData(providerData) ? providerData.parts : [];
  const fits =
    isProviderData(providerData) &&
    providerData.provider === provider &&
    providerData.model === model &&
    parts.filter(({ type }) => type === 'toolCall').length === calls.length &&
    parts.reduce((sum, part) => sum + (part.type === 'text' ? part.length : 0), 0) === text.length;
  if (!fits) return [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls];

  const whole: AssistantPart[] = [];
  let at = 0;
  for (const part of parts) {
    const options = part.metadata === undefined ? {} : { providerOptions: part.metadata };
    if (part.type === 'text') {
      whole.push({ type: 'text', text: text.slice(at, at + part.length), ...options });
      at += part.length;
    } else if (part.type === 'toolCall') {
      whole.push({ ...calls.shift()!, ...options });
    } else if (isOfThisTurn) {
      whole.push({ type: 'reasoning', text: part.text, ...options });
    }
  }
  return whole;
}

/** The same call, without what a provider may refuse although it made it: its key was changed, or what it checks has. */
export function withoutProviderData(call: ModelCall): ModelCall {
  return { ...call, transcript: call.transcript.map(({ role, content }) => ({ role, content })) };
}

export function hasProviderData({ transcript }: ModelCall): boolean {
  return transcript.some(({ providerData }) => isProviderData(providerData));
}

function toToolCall({ toolCallId, tool, input }: ToolCall): Extract<AssistantPart, { type: 'tool-call' }> {
  return { type: 'tool-call', toolCallId, toolName: tool, input: toArguments(input) };
}

/** Servers refuse a transcript whose calls have no object as their arguments; what a model wrote instead is shown in one. */
function toArguments(input: unknown): unknown {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { invalid: input };
}

/** It is our own, but may have been stored by another version. */
function isProviderData(value: unknown): value is ProviderData {
  return typeof value === 'object' && value !== null && 'parts' in value && Array.isArray(value.parts);
}
