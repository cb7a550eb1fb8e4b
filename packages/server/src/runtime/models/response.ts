// What a model answers: the parts of an SDK's stream become the events that the turn machine knows, the same for all providers.
//
// Text is given as it comes. Tool calls are kept until the stream has ended well: one that breaks off gives none. Reasoning is
// never shown; it goes, with everything else that the provider wants to see again, into the `providerData` of the last event.
import {
  type LanguageModelV4FinishReason,
  type LanguageModelV4StreamPart,
  type LanguageModelV4Usage,
  type SharedV4ProviderMetadata,
  TypeValidationError,
} from '@ai-sdk/provider';
import { parseJson } from '../../lib/json.ts';
import type { TokenUsage } from '../../sessions/state/operations.ts';
import type { Redact, StreamRedaction } from '../tools/redact.ts';
import { shownJson, shownText } from '../tools/result.ts';
import { type ModelEvent, ModelFailure, PROVIDER_DATA_MAX_CHARACTERS } from './model.ts';
import type { Provider } from './provider.ts';
import type { ProviderConnection } from './provider-connection.ts';
import type { DataPart, ProviderData } from './provider-data.ts';
import { brokenOff } from './provider-failure.ts';

/** Of one answer, names and inputs together. They are kept in memory until the answer ends, and then stored. */
const TOOL_CALLS_MAX_CHARACTERS = 1024 * 1024;
const TOOL_CALLS_MAX = 100;

/** Takes the key that was sent out of what the server says. `text` is for one answer. */
export interface ResponseRedaction {
  readonly redact: Redact;
  readonly text: StreamRedaction;
}

type ToolCall = Extract<ModelEvent, { type: 'toolCall' }>;

/** The events of a stream, which are complete: a stream that breaks off throws before any of its tool calls is given. */
export async function* readResponse(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  { name: provider, passesOver }: Provider,
  model: string,
  connection: ProviderConnection,
  { redact, text: shown }: ResponseRedaction,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  const reader = stream.getReader();
  const calls: ToolCall[] = [];
  const keep = createKeeper();
  let callCharacters = 0;
  while (true) {
    const { done, value: part } = await connection.wait(reader.read());
    signal.throwIfAborted();
    if (done) throw brokenOff();
    keep.part(part);
    switch (part.type) {
      case 'text-delta': {
        // Without what can't be stored: a secret with a NUL in it would not be found.
        const delta = shown.push(part.delta.replaceAll('\0', ''));
        if (shown.isTooMany) throw repeatsKey();
        if (delta !== '') yield { type: 'text', delta };
        break;
      }
      case 'tool-input-start':
      case 'tool-input-delta':
        callCharacters += part.type === 'tool-input-delta' ? part.delta.length : part.toolName.length;
        if (callCharacters > TOOL_CALLS_MAX_CHARACTERS) throw tooMuch(`${TOOL_CALLS_MAX_CHARACTERS} characters`);
        break;
      case 'tool-call':
        // One that the provider ran by itself is none of ours.
        if (part.providerExecuted) break;
        calls.push(shownCall(part, redact));
        if (calls.length > TOOL_CALLS_MAX) throw tooMuch(`${TOOL_CALLS_MAX} calls`);
        break;
      case 'error':
        if (TypeValidationError.isInstance(part.error) && passesOver?.(part.error.value)) break;
        throw connection.failureOf(part.error);
      case 'finish': {
        const reason = reasonOf(part.finishReason, calls.length > 0);
        const parts = keep.kept(redact);
        const usage = usageOf(part.usage);
        const rest = shown.end();
        if (rest !== '') yield { type: 'text', delta: rest };
        if (reason !== 'refusal') yield* calls;
        yield parts === undefined || reason === 'refusal'
          ? { type: 'finish', reason, usage }
          : { type: 'finish', reason, usage, providerData: { provider, model, parts } satisfies ProviderData };
        return;
      }
    }
  }
}

/** Notes the order of an answer's parts, its reasoning, and what the provider has attached to each. */
function createKeeper() {
  const parts: DataPart[] = [];
  const open = new Map<string, DataPart>();
  let reasoningCharacters = 0;

  function begin(id: string, part: DataPart): DataPart {
    parts.push(part);
    open.set(id, part);
    return part;
  }

  /** What came last counts: providers say it whole each time. */
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
          if (part.providerExecuted) break;
          const call: DataPart = { type: 'toolCall' };
          attach(call, part.providerMetadata);
          parts.push(call);
          break;
        }
      }
    },
    /** Undefined if there is nothing to know beyond text and calls, or more than is kept, or if it holds the key. */
    kept(redact: Redact): DataPart[] | undefined {
      if (!parts.some(({ type, metadata }) => type === 'reasoning' || metadata !== undefined)) return undefined;
      const json = JSON.stringify(parts);
      return json.length <= PROVIDER_DATA_MAX_CHARACTERS && redact(json) === json ? parts : undefined;
    },
  };
}

function shownCall(part: { toolName: string; input: string }, redact: Redact): ToolCall {
  const [name, input] = [shownText(part.toolName, redact), shownJson(inputOf(part.input), redact)];
  if (name.length + JSON.stringify(input).length > 2 * TOOL_CALLS_MAX_CHARACTERS) throw repeatsKey();
  return { type: 'toolCall', name, input };
}

function repeatsKey(): ModelFailure {
  return new ModelFailure('model_protocol', 'The model’s server repeats its key in its response', { retryable: false });
}

function tooMuch(limit: string): ModelFailure {
  return new ModelFailure('model_protocol', `The model’s tool calls are larger than ${limit}`, { retryable: true });
}

/** What is not JSON, or is nested too deeply to be stored, stays text: no tool's schema takes that, and the model is told. */
function inputOf(text: string): unknown {
  return text.trim() === '' ? {} : (parseJson(text) ?? text);
}

/** Providers' own words for an answer that went wrong on their side, where an SDK takes them for an end. */
const FAILED: ReadonlySet<string> = new Set([
  'error',
  // DeepSeek's, for being overloaded in the middle of an answer.
  'insufficient_system_resource',
  // Google's, for calls that it could not read itself, for a seal that it misses, and for what it has no word for.
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
  'OTHER',
]);

/** And for one that it will not give: Google's, in a language that its filter does not know. */
const REFUSED: ReadonlySet<string> = new Set(['LANGUAGE']);

function reasonOf(
  { unified, raw }: LanguageModelV4FinishReason,
  hasCalls: boolean,
): Extract<ModelEvent, { type: 'finish' }>['reason'] {
  if (unified === 'interrupted') throw brokenOff();
  if (unified === 'error' || FAILED.has(raw ?? '')) {
    throw new ModelFailure('model_unavailable', 'The model ended its response with an error', { retryable: true });
  }
  if (unified === 'content-filter' || REFUSED.has(raw ?? '')) return 'refusal';
  if (unified === 'length') return 'maxOutputTokens';
  // Servers disagree on what they say after tool calls; that there are some is what counts.
  return hasCalls ? 'toolCalls' : 'endTurn';
}

/** Zero where the server does not say. */
function usageOf({ inputTokens, outputTokens }: LanguageModelV4Usage): TokenUsage {
  return {
    inputTokens: countOf(inputTokens.total),
    outputTokens: countOf(outputTokens.total),
    cachedTokens: countOf(inputTokens.cacheRead),
  };
}

/** No call uses more than this; a server that says so would spoil the sums of the Session. */
const TOKENS_MAX = 1_000_000_000;

function countOf(tokens: number | undefined): number {
  return tokens !== undefined && Number.isInteger(tokens) && tokens >= 0 && tokens <= TOKENS_MAX ? tokens : 0;
}
