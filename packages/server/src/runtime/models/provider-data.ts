// Data that a provider must receive again with the next call: the order of a response's parts, its reasoning, and the signatures
// and encrypted values attached to them. The transcript contains only text and tool calls. This file combines both into the
// response as the provider gave it.
//
// The data is only useful to the model that created it, so it contains that model's name. Reasoning is sent back only within its
// own turn, where providers require it between tool calls. In later turns they ignore it, or check that nothing before it
// (instructions, tools) has changed, which is possible here from one turn to the next.
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
  /** The next part of the transcript's text, of this many characters. */
  | { type: 'text'; length: number }
  /** The transcript's next tool call. */
  | { type: 'toolCall' }
);

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];
type ToolCall = Extract<MessagePart, { type: 'tool_call' }>;

/** A response as its provider gave it. `isOfThisTurn`: includes its reasoning. */
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

/** Whether a provider may refuse the call because of data of an earlier response, or because there is none. */
export function dependsOnProviderData(call: ModelCall): boolean {
  return call.transcript.some(({ providerData }) => isProviderData(providerData)) || reasonsWithinTurn(call);
}

/**
 * The same call without provider data, which may be refused after a change of the API key or of anything that it signs. Within a
 * turn it does not ask for reasoning either: Anthropic refuses to reason about tool calls that came without its own reasoning, as
 * those of another model do.
 */
export function withoutProviderData(call: ModelCall): ModelCall {
  const { settings: { reasoning, ...settings } = {}, ...config } = call.config;
  return {
    ...call,
    config: reasonsWithinTurn(call) ? { ...config, settings } : call.config,
    transcript: call.transcript.map(({ providerData: _, ...entry }) => entry),
  };
}

function reasonsWithinTurn({ config, transcript }: ModelCall): boolean {
  const { reasoning = 'none' } = config.settings ?? {};
  return reasoning !== 'none' && transcript.at(-1)?.role !== 'user';
}

function toToolCall({ toolCallId, tool, input }: ToolCall): Extract<AssistantPart, { type: 'tool-call' }> {
  return { type: 'tool-call', toolCallId, toolName: tool, input: toArguments(input) };
}

/** Servers refuse a transcript with calls whose arguments are not an object, so any other value is wrapped in one. */
function toArguments(input: unknown): unknown {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { invalid: input };
}

/** We wrote it, but perhaps with another version of this code. */
function isProviderData(value: unknown): value is ProviderData {
  return typeof value === 'object' && value !== null && 'parts' in value && Array.isArray(value.parts);
}
