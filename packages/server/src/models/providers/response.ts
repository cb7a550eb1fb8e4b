// Converts the parts of an SDK's stream into the events of the turn machine, which are the same for all providers.
//
// Text is passed on as it arrives, and so are reasoning and the input of tool calls if the agent shows them. Tool calls are held
// back until the stream has ended normally: a stream that breaks off gives none. Reasoning also becomes part of the `providerData` of
// the last event, with everything else that the provider must receive again. What a provider encrypts or redacts has no deltas here,
// so it is never shown.
import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { newUuid } from '../../lib/ids.ts';
import { parseJson } from '../../lib/json/json.ts';
import type { Redact, StreamRedaction } from '../../tools/tool/redact.ts';
import { shownJson, shownText } from '../../tools/tool/result.ts';
import { streamAborted } from '../failure/provider-failure.ts';
import { type ModelCall, type ModelEvent, ModelFailure, PROVIDER_DATA_MAX_CHARACTERS } from '../model/model.ts';
import { RETURNED_ID } from '../model/prompt-rules.ts';
import { usageOf } from '../model/usage.ts';
import { CHAT_DATA, type ChatData } from '../prompt/chat-data.ts';
import type { DataPart, ProviderData } from '../prompt/provider-data.ts';
import { shownRan } from '../response/ran.ts';
import type { SentTools } from '../tools/tools.ts';
import type { Provider } from './provider.ts';
import type { ProviderConnection } from './provider-connection.ts';

/** Names and inputs of one response, in total. They are kept in memory until the response ends, and then stored. */
const TOOL_CALLS_MAX_CHARACTERS = 1024 * 1024;
const TOOL_CALLS_MAX = 100;

/** Removes the key that was sent from what the server returns. */
export interface ResponseRedaction {
  readonly redact: Redact;
  /** For a text that arrives in pieces. */
  stream(): StreamRedaction;
}

type ToolCall = Extract<ModelEvent, { type: 'toolCall' }>;

/** The events of a complete stream. If the stream breaks off, it throws before it yields any tool call. */
export async function* readResponse(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  { name: provider }: Provider,
  { config: { model = '' }, shows, tools }: Pick<ModelCall, 'config' | 'shows'> & { tools: SentTools },
  connection: ProviderConnection,
  redaction: ResponseRedaction,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  const reader = stream.getReader();
  const calls: ToolCall[] = [];
  const keep = createKeeper();
  const { redact } = redaction;
  const shown = redaction.stream();
  const early = createEarlyParts(shows, tools, redaction);
  let callCharacters = 0;
  while (true) {
    const { done, value: part } = await connection.wait(reader.read());
    signal.throwIfAborted();
    if (done) throw streamAborted();
    keep.part(part);
    switch (part.type) {
      case 'text-delta': {
        // Characters that can't be stored are removed first: a secret with a NUL in it would not be found.
        const delta = shown.push(part.delta.replaceAll('\0', ''));
        if (shown.isTooMany) throw repeatsKey();
        if (delta !== '') yield { type: 'text', delta };
        break;
      }
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        yield* early.reasoning(part);
        break;
      case 'tool-input-start':
      case 'tool-input-delta':
        callCharacters += part.type === 'tool-input-delta' ? part.delta.length : part.toolName.length;
        if (callCharacters > TOOL_CALLS_MAX_CHARACTERS) throw tooMuch(`${TOOL_CALLS_MAX_CHARACTERS} characters`);
        yield* early.toolInput(part);
        break;
      case 'tool-input-end':
        yield* early.toolInput(part);
        break;
      case 'tool-call':
        // The connection has what the provider ran itself, as it was on the wire.
        if (part.providerExecuted) break;
        calls.push({ ...shownCall(part, tools, redact), ...early.operationOf(part) });
        if (calls.length > TOOL_CALLS_MAX) throw tooMuch(`${TOOL_CALLS_MAX} calls`);
        break;
      case 'error':
        throw connection.failureOf(part.error);
      case 'finish': {
        const reason = reasonOf(part.finishReason, calls.length > 0);
        const kept = keep.kept(redact);
        const usage = usageOf(part.usage, connection.webSearches);
        const rest = shown.end();
        if (rest !== '') yield { type: 'text', delta: rest };
        const ran = shownRan(connection.ran, redact);
        if (ran.calls.length > 0 || ran.sources.length > 0) yield { type: 'ran', ...ran };
        if (reason !== 'refusal') yield* calls;
        const data = reason === 'refusal' ? undefined : kept;
        yield {
          type: 'finish',
          reason,
          usage,
          ...(data && { providerData: { provider, model, ...data } satisfies ProviderData }),
          ...(part.finishReason.raw === 'pause_turn' && { isPaused: true }),
        };
        return;
      }
    }
  }
}

/**
 * Reasoning and the input of calls, as they are shown before the response is complete. Each part is searched for the key by
 * itself, as text is.
 */
function createEarlyParts(shows: ModelCall['shows'] = {}, tools: SentTools, { redact, stream }: ResponseRedaction) {
  let thought: StreamRedaction | undefined;
  let hasReasoned = false;
  const inputs = new Map<string, { operationId: string; name: string; input: StreamRedaction }>();

  function shownOf(redaction: StreamRedaction, piece: string | undefined): string {
    const text = piece === undefined ? redaction.end() : redaction.push(piece.replaceAll('\0', ''));
    if (redaction.isTooMany) throw repeatsKey();
    return text;
  }

  return {
    *reasoning(
      part: Extract<LanguageModelV4StreamPart, { type: 'reasoning-start' | 'reasoning-delta' | 'reasoning-end' }>,
    ): Generator<Extract<ModelEvent, { type: 'reasoning' }>> {
      if (!shows.reasoning) return;
      if (part.type === 'reasoning-start') {
        thought = undefined;
        return;
      }
      // Providers summarize each thought by itself: a thought is a paragraph.
      const separator = thought || !hasReasoned ? '' : '\n\n';
      thought ??= stream();
      const text = shownOf(thought, part.type === 'reasoning-end' ? undefined : part.delta);
      if (text === '') return;
      hasReasoned = true;
      yield { type: 'reasoning', delta: separator + text };
    },
    *toolInput(
      part: Extract<LanguageModelV4StreamPart, { type: 'tool-input-start' | 'tool-input-delta' | 'tool-input-end' }>,
    ): Generator<Extract<ModelEvent, { type: 'toolInput' }>> {
      if (!shows.toolInput) return;
      if (part.type === 'tool-input-start') {
        // An input with other names than the call will have is shown once it is complete.
        if (part.providerExecuted || inputs.size >= TOOL_CALLS_MAX || tools.isRenamed(part.toolName)) return;
        const { name } = tools.ownCall(part.toolName, null);
        inputs.set(part.id, { operationId: newUuid(), name: shownText(name, redact), input: stream() });
        return;
      }
      const call = inputs.get(part.id);
      if (!call) return;
      const delta = shownOf(call.input, part.type === 'tool-input-end' ? undefined : part.delta);
      if (delta !== '') yield { type: 'toolInput', operationId: call.operationId, name: call.name, delta };
    },
    operationOf({ toolCallId }: { toolCallId: string }): { operationId?: string } {
      const call = inputs.get(toolCallId);
      // Some servers repeat the id of a call.
      inputs.delete(toolCallId);
      return call ? { operationId: call.operationId } : {};
    },
  };
}

/** Records the order of a response's parts, its reasoning, and the data that the provider attached to each. */
function createKeeper() {
  const parts: DataPart[] = [];
  let chat: ProviderData['chat'];
  const open = new Map<string, DataPart>();
  let reasoningCharacters = 0;

  function begin(id: string, part: DataPart): DataPart {
    parts.push(part);
    open.set(id, part);
    return part;
  }

  /** The last value counts: providers send the complete value each time. */
  function attach(part: DataPart, metadata: SharedV4ProviderMetadata | undefined): void {
    if (metadata !== undefined) part.metadata = metadata;
  }

  return {
    part(part: LanguageModelV4StreamPart): void {
      switch (part.type) {
        case 'text-start':
        case 'text-delta':
        case 'text-end': {
          const id = `text ${part.id}`;
          if (part.type === 'text-start') open.delete(id);
          const text = open.get(id) ?? begin(id, { type: 'text', length: 0 });
          if (part.type === 'text-delta' && text.type === 'text') text.length += part.delta.length;
          attach(text, part.providerMetadata);
          break;
        }
        case 'reasoning-start':
        case 'reasoning-delta':
        case 'reasoning-end': {
          const id = `reasoning ${part.id}`;
          if (part.type === 'reasoning-start') open.delete(id);
          const reasoning = open.get(id) ?? begin(id, { type: 'reasoning', text: '' });
          if (part.type === 'reasoning-delta' && reasoning.type === 'reasoning') {
            reasoningCharacters += part.delta.length;
            if (reasoningCharacters <= PROVIDER_DATA_MAX_CHARACTERS) reasoning.text += part.delta;
          }
          attach(reasoning, part.providerMetadata);
          break;
        }
        case 'tool-call': {
          if (part.providerExecuted) {
            const { toolCallId: id, toolName: tool } = part;
            const ran: DataPart = { type: 'ranCall', id, tool, input: inputOf(part.input) };
            attach(ran, part.providerMetadata);
            parts.push(ran);
            break;
          }
          const call: DataPart = {
            type: 'toolCall',
            ...(RETURNED_ID.test(part.toolCallId) && { id: part.toolCallId }),
          };
          attach(call, part.providerMetadata);
          parts.push(call);
          break;
        }
        case 'tool-result': {
          const { toolCallId: id, toolName: tool, result: output, isError } = part;
          const ran: DataPart = { type: 'ranResult', id, tool, output, ...(isError && { isError }) };
          attach(ran, part.providerMetadata);
          parts.push(ran);
          break;
        }
        case 'finish': {
          const data = part.providerMetadata?.[CHAT_DATA] as unknown as ChatData | undefined;
          if (data) chat = attachChatData(parts, data);
          break;
        }
      }
    },
    /** Undefined if text and calls say everything, if the data exceeds its limit, or if it contains the key. */
    kept(redact: Redact): Pick<ProviderData, 'parts' | 'ranParts' | 'chat'> | undefined {
      const isPlain = parts.every(
        (part) => (part.type === 'text' || part.type === 'toolCall') && part.metadata === undefined && !('id' in part),
      );
      if (isPlain && chat === undefined) return undefined;
      const hasRan = parts.some(({ type }) => type === 'ranCall' || type === 'ranResult');
      const kept = { ...(hasRan ? { ranParts: parts } : { parts }), ...(chat && { chat }) };
      const json = JSON.stringify(kept);
      return json.length <= PROVIDER_DATA_MAX_CHARACTERS && redact(json) === json ? kept : undefined;
    },
  };
}

/** Returns what is left for the whole response; undefined if that is nothing. */
function attachChatData(parts: readonly DataPart[], { calls, message, reasoningIn }: ChatData): ProviderData['chat'] {
  const called = parts.filter(({ type }) => type === 'toolCall');
  for (const [at, part] of called.entries()) {
    const fields = calls[at];
    // Includes what the SDK knows of it.
    if (fields) part.metadata = { openaiCompatible: fields as never };
  }
  const hasReasoning = parts.some(({ type }) => type === 'reasoning');
  return hasReasoning || Object.keys(message).length > 0 ? { reasoningIn, message } : undefined;
}

function shownCall(part: { toolName: string; input: string }, tools: SentTools, redact: Redact): ToolCall {
  const own = tools.ownCall(part.toolName, inputOf(part.input));
  const [name, input] = [shownText(own.name, redact), shownJson(own.input, redact)];
  if (name.length + JSON.stringify(input).length > 2 * TOOL_CALLS_MAX_CHARACTERS) throw repeatsKey();
  return { type: 'toolCall', name, input };
}

function repeatsKey(): ModelFailure {
  return new ModelFailure('model_protocol', 'The model’s server repeats its key in its response', { retryable: false });
}

function tooMuch(limit: string): ModelFailure {
  return new ModelFailure('model_protocol', `The model’s tool calls are larger than ${limit}`, { retryable: true });
}

/**
 * Input that is not JSON, or is too deeply nested to be stored, remains text. It fails validation, and the model gets the error. Servers
 * write many things for no arguments, and some write the JSON of the JSON.
 */
function inputOf(text: string): unknown {
  const value = text.trim() === '' ? null : parseJson(text);
  if (value === undefined) return text;
  if (value === null || value === '' || (Array.isArray(value) && value.length === 0)) return {};
  const inner = typeof value === 'string' ? parseJson(value) : undefined;
  return typeof inner === 'object' ? (inner ?? {}) : value;
}

/** Finish reasons that mean a failure on the provider's side, but that an SDK treats as a normal end. */
const FAILED: ReadonlySet<string> = new Set([
  'error',
  // DeepSeek: overloaded in the middle of a response. Others: the request was lost there.
  'insufficient_system_resource',
  'network_error',
  'abort',
  // Google: calls that it could not parse, a missing thought signature, and its catch-all.
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MALFORMED_FUNCTION_CALL',
  'MISSING_THOUGHT_SIGNATURE',
  'OTHER',
]);

/** Finish reasons that mean a refusal. Google: a language that its filter does not support. Others: of providers behind a gateway. */
const REFUSED: ReadonlySet<string> = new Set([
  'LANGUAGE',
  'SAFETY',
  'PROHIBITED_CONTENT',
  'BLOCKLIST',
  'RECITATION',
  'refusal',
  'content_filtered',
  'guardrail_intervened',
  'sensitive',
]);

/** Finish reasons of providers behind a gateway that mean that the response was cut. */
const CUT: ReadonlySet<string> = new Set(['max_tokens', 'MAX_TOKENS', 'max_output_tokens', 'model_length']);

function reasonOf(
  { unified, raw }: LanguageModelV4FinishReason,
  hasCalls: boolean,
): Extract<ModelEvent, { type: 'finish' }>['reason'] {
  if (unified === 'interrupted') throw streamAborted();
  if (unified === 'error' || FAILED.has(raw ?? '')) {
    throw new ModelFailure('model_unavailable', 'The model ended its response with an error', { retryable: true });
  }
  if (unified === 'content-filter' || REFUSED.has(raw ?? '')) return 'refusal';
  if (unified === 'length' || CUT.has(raw ?? '')) return 'maxOutputTokens';
  // Servers report different reasons after tool calls. What counts is that there are some.
  return hasCalls ? 'toolCalls' : 'endTurn';
}
