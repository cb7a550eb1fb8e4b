// Data that a provider must receive again with the next call: the order of a response's parts, its reasoning, and the signatures
// and encrypted values attached to them. The transcript contains only text and tool calls. This file combines both into the
// response as the provider gave it.
//
// The data is only useful to the model that created it, so it contains that model's name. How long its reasoning is sent back differs
// (prompt-rules.ts). Some providers require it between tool calls, and in later turns ignore it or check that nothing before it
// (instructions, tools) has changed, which is possible here from one turn to the next. Others require it for as long as the calls are
// in the transcript.
import type { JSONValue, LanguageModelV4Message, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { MessagePart } from '@signalbox/contract';
import type { ModelCall, ModelEntry } from '../model/model.ts';
import type { PromptRules } from '../model/prompt-rules.ts';
import type { ChatData } from './chat-data.ts';

export interface ProviderData {
  readonly provider: string;
  readonly model: string;
  readonly parts?: readonly DataPart[];
  /** In place of `parts` if the provider ran something itself. Releases before it do not read it, and send text and calls only. */
  readonly ranParts?: readonly DataPart[];
  /** What a server of chat completions attached to the whole response. */
  readonly chat?: Pick<ChatData, 'reasoningIn' | 'message'>;
}

export type DataPart = { metadata?: SharedV4ProviderMetadata } & (
  | { type: 'reasoning'; text: string }
  /** The next part of the transcript's text, of this many characters. */
  | { type: 'text'; length: number }
  /** The transcript's next tool call. `id`: the provider's own, if it may need it back. */
  | { type: 'toolCall'; id?: string }
  /** A call that the provider ran itself, and a result of one, as its package reads them. */
  | { type: 'ranCall'; id: string; tool: string; input: unknown }
  | { type: 'ranResult'; id: string; tool: string; output: unknown; isError?: true }
);

type AssistantMessage = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type AssistantPart = AssistantMessage['content'][number];
type ToolCall = Extract<MessagePart, { type: 'tool_call' }>;

/** The responses of a transcript as their provider gave them. */
export function createResponses(
  { transcript, config, webSearch }: Pick<ModelCall, 'transcript' | 'config' | 'webSearch'>,
  rules: PromptRules,
) {
  const loop = transcript.slice(loopBegins(transcript));
  const isChat = config.provider === 'openai-compatible';
  const datas = new Map(
    transcript.map((entry) => {
      const data = dataOf(entry, config);
      // A request without the tool may be refused because of what it has found.
      return [entry, data?.hasRan && !webSearch ? undefined : data];
    }),
  );
  // A server that sends this field takes it, and may require it of every response with calls.
  const wantsReasoning =
    rules.reasoning === 'always' ||
    (rules.reasoning === 'asReceived' &&
      [...datas.values()].some((data) => data?.chat?.reasoningIn === 'reasoning_content'));

  return {
    /** The ids that the provider gave its calls, by their ids in the transcript. */
    ownIds: new Map(
      transcript.flatMap((entry) => {
        const own = datas.get(entry)?.parts.flatMap((part) => (part.type === 'toolCall' ? [part.id] : [])) ?? [];
        return callsOf(entry).flatMap(({ toolCallId }, at) => (own[at] ? [[toolCallId, own[at]] as const] : []));
      }),
    ),
    messageOf(entry: ModelEntry): AssistantMessage {
      const data = datas.get(entry);
      const returns = rules.reasoning === 'sinceResponse' ? loop.includes(entry) : rules.reasoning !== 'never';
      const content = partsOf(entry, data, {
        reasoning: returns,
        ran: rules.ran === 'always' || (rules.ran === 'withReasoning' && returns && !data?.parts.some(isUnsealed)),
      });
      if (!isChat) return { role: 'assistant', content };
      const isText = data?.chat === undefined || data.chat.reasoningIn === 'reasoning_content';
      const hasReasoning = content.some((part) => part.type === 'reasoning' && part.text !== '');
      const hasCalls = callsOf(entry).length > 0;
      const fields = {
        ...(hasCalls && wantsReasoning && !(isText && hasReasoning) && { reasoning_content: '' }),
        ...(returns && chatFields(data, config.model ?? '')),
      };
      return {
        role: 'assistant',
        content: isText ? content : content.filter(({ type }) => type !== 'reasoning'),
        ...(Object.keys(fields).length > 0 && { providerOptions: { openaiCompatible: fields as never } }),
      };
    },
  };
}

/** The entry after the last complete response, which is one without calls: the next turn continues an interrupted one. */
function loopBegins(transcript: ModelCall['transcript']): number {
  const turn = transcript.findLastIndex(({ role }) => role === 'user');
  const complete = transcript.findLastIndex(
    (entry, index) => index < turn && entry.role === 'assistant' && callsOf(entry).length === 0,
  );
  return complete + 1;
}

/** `parts` of a response, whichever field has them. */
type KnownData = Pick<ProviderData, 'chat'> & { readonly parts: readonly DataPart[]; readonly hasRan: boolean };

/** Undefined if it is of another model, or does not fit what is in the transcript now. */
function dataOf(
  entry: ModelEntry,
  { provider, model }: Pick<ModelCall['config'], 'provider' | 'model'>,
): KnownData | undefined {
  const { providerData: data } = entry;
  if (!isProviderData(data) || data.provider !== provider || data.model !== model) return undefined;
  const { chat, ranParts, parts = ranParts ?? [] } = data;
  const fits =
    parts.filter(({ type }) => type === 'toolCall').length === callsOf(entry).length &&
    parts.reduce((sum, part) => sum + (part.type === 'text' ? part.length : 0), 0) === textOf(entry).length;
  return fits ? { parts, hasRan: ranParts !== undefined, ...(chat && { chat }) } : undefined;
}

/** `sends`: what goes back to the provider besides text and calls. */
function partsOf(
  entry: ModelEntry,
  data: KnownData | undefined,
  sends: { reasoning: boolean; ran: boolean },
): AssistantPart[] {
  const text = textOf(entry);
  const calls = callsOf(entry).map(toToolCall);
  if (!data) return [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls];
  const whole: AssistantPart[] = [];
  let at = 0;
  for (const part of data.parts) {
    const options = part.metadata === undefined ? {} : { providerOptions: part.metadata };
    switch (part.type) {
      case 'text':
        whole.push({ type: 'text', text: text.slice(at, at + part.length), ...options });
        at += part.length;
        break;
      case 'toolCall':
        whole.push({ ...calls.shift()!, ...options });
        break;
      case 'reasoning':
        if (sends.reasoning) whole.push({ type: 'reasoning', text: part.text, ...options });
        break;
      case 'ranCall': {
        const { id: toolCallId, tool: toolName, input } = part;
        const call = { type: 'tool-call' as const, toolCallId, toolName, input, providerExecuted: true };
        if (sends.ran) whole.push({ ...call, ...options });
        break;
      }
      case 'ranResult': {
        const { id: toolCallId, tool: toolName, output, isError } = part;
        const value = withTitles(output) as JSONValue;
        const result = { type: isError ? ('error-json' as const) : ('json' as const), value };
        if (sends.ran) whole.push({ type: 'tool-result', toolCallId, toolName, output: result, ...options });
        break;
      }
    }
  }
  return whole;
}

/** Reasoning that was not given in a form to send back: at Azure, a model that its package does not know by its deployment's name. */
function isUnsealed({ type, metadata = {} }: DataPart): boolean {
  return type === 'reasoning' && !Object.values(metadata).some((own) => own.reasoningEncryptedContent);
}

/** Anthropic's package leaves out the title of a page without one, and requires it. */
function withTitles(output: unknown): unknown {
  if (!Array.isArray(output)) return output ?? null;
  return output.map((one: unknown) => (typeof one === 'object' && one !== null ? { title: null, ...one } : one));
}

/** The fields of a message that the server attached to it. */
function chatFields(data: KnownData | undefined, model: string): Record<string, unknown> {
  if (!data?.chat) return {};
  const { message, reasoningIn } = data.chat;
  if (reasoningIn === 'reasoning') {
    const texts = data.parts.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
    return { ...message, reasoning: texts.join('') };
  }
  const { reasoning_details: details } = message;
  // These check signatures, and refuse a text without one.
  if (!Array.isArray(details) || !/claude|gemini/i.test(model)) return message;
  const signed = details.filter((detail) => detail?.type !== 'reasoning.text' || detail.signature);
  return { ...message, reasoning_details: signed };
}

/** Whether a provider may refuse the call because of data of an earlier response, or because there is none. */
export function dependsOnProviderData(call: ModelCall): boolean {
  return call.transcript.some(({ providerData }) => isProviderData(providerData)) || reasonsAboutCalls(call);
}

/**
 * The same call without provider data, which may be refused after a change of the API key or of anything that it signs. After calls it
 * does not ask for reasoning either: Anthropic refuses to reason about tool calls that came without its own reasoning, as calls of
 * another model do.
 */
export function withoutProviderData(call: ModelCall): ModelCall {
  const { settings: { reasoning, ...settings } = {}, ...config } = call.config;
  return {
    ...call,
    config: reasonsAboutCalls(call) ? { ...config, settings } : call.config,
    transcript: call.transcript.map(({ providerData: _, ...entry }) => entry),
  };
}

function reasonsAboutCalls({ config, transcript }: ModelCall): boolean {
  const { reasoning = 'none' } = config.settings ?? {};
  const last = transcript.findLast(({ role }) => role === 'assistant');
  return reasoning !== 'none' && last !== undefined && callsOf(last).length > 0;
}

function textOf({ content }: ModelEntry): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function callsOf({ content }: ModelEntry): ToolCall[] {
  return content.filter((part) => part.type === 'tool_call' && part.by === undefined) as ToolCall[];
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
  if (typeof value !== 'object' || value === null) return false;
  const { parts, ranParts } = value as Partial<ProviderData>;
  return Array.isArray(parts) || Array.isArray(ranParts);
}
