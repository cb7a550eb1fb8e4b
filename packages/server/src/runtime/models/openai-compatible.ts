// Any server that speaks OpenAI's chat completions: OpenAI itself, Ollama, vLLM, llama.cpp, gateways.
//
// The provider of `@ai-sdk/openai-compatible` knows the wire format and its dialects; it is called at its own interface
// (`doStream`), which makes one request, repeats nothing and reads no environment variable. The key is one secret of the
// Session's Environment, given to the server's host only where the secret's own list allows it.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider';
import { mayGoTo, openSecrets } from '../../environments/secrets.ts';
import type { Platform } from '../../platform.ts';
import type { TokenUsage } from '../../sessions/operations.ts';
import { parseJson } from '../json.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from './model.ts';
import { toCallOptions } from './prompt.ts';
import { openConnection, type ProviderConnection } from './provider-connection.ts';

/** Of one answer, names and inputs together. They are kept in memory until the answer ends, and then stored. */
const TOOL_CALLS_MAX_CHARACTERS = 1024 * 1024;
const TOOL_CALLS_MAX = 100;

type ToolCall = Extract<ModelEvent, { type: 'toolCall' }>;

export function createOpenAiCompatibleModel(platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock'>): AskModel {
  return async function* ask(call, signal) {
    signal.throwIfAborted();
    const connection = openConnection(platform, signal);
    try {
      const baseUrl = baseUrlOf(call);
      const apiKey = await apiKeyFor(platform, call, baseUrl);
      const provider = createOpenAICompatible({
        name: 'provider',
        baseURL: baseUrl.origin + baseUrl.pathname,
        ...(baseUrl.search !== '' && { queryParams: Object.fromEntries(baseUrl.searchParams) }),
        ...(apiKey !== undefined && { apiKey }),
        fetch: connection.fetch,
        includeUsage: true,
      });
      const { stream } = await connection.wait(
        provider.chatModel(call.config.model).doStream({ ...toCallOptions(call), abortSignal: connection.signal }),
      );
      yield* eventsOf(stream, connection, signal);
    } catch (error) {
      // Errors end here: a provider's holds the prompt, and whichever one an abort brings about, the abort is the reason.
      signal.throwIfAborted();
      throw connection.failureOf(error);
    } finally {
      connection.close();
    }
  };
}

function baseUrlOf({ config }: ModelCall): URL {
  const url = URL.parse(config.baseUrl ?? '');
  if (url === null) throw new ModelFailure('model_rejected', 'The model has no base url', { retryable: false });
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}

/** Undefined where the Agent names no secret. Throws `model_not_allowed` where there is none, or not for this host. */
async function apiKeyFor(
  platform: Pick<Platform, 'db' | 'vault'>,
  { config, organizationId, environment }: ModelCall,
  baseUrl: URL,
): Promise<string | undefined> {
  const name = config.apiKeySecret;
  if (name === undefined) return undefined;
  const secret = await openSecrets(platform, organizationId, environment, [name]).then(
    (secrets) => secrets.get(name),
    () => {
      throw new ModelFailure('model_unavailable', `The secret ${name} could not be read`, { retryable: true });
    },
  );
  const refused = (why: string) => new ModelFailure('model_not_allowed', why, { retryable: false });
  if (!secret) throw refused(`The Environment has no secret ${name}`);
  if (!mayGoTo(secret.allowedHosts, baseUrl)) throw refused(`The secret ${name} may not be sent to the model’s host`);
  const key = secret.value.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw refused(`The secret ${name} holds what no header can carry`);
  return key;
}

/** The events of a stream, which are complete: a stream that breaks off throws before any of its tool calls is given. */
async function* eventsOf(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  connection: ProviderConnection,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  const reader = stream.getReader();
  const calls: ToolCall[] = [];
  let callCharacters = 0;
  while (true) {
    const { done, value: part } = await connection.wait(reader.read());
    signal.throwIfAborted();
    if (done) throw new ModelFailure('model_unavailable', 'The model’s stream broke off', { retryable: true });
    switch (part.type) {
      case 'text-delta':
        if (part.delta !== '') yield { type: 'text', delta: part.delta };
        break;
      case 'tool-input-start':
      case 'tool-input-delta':
        callCharacters += part.type === 'tool-input-delta' ? part.delta.length : part.toolName.length;
        if (callCharacters > TOOL_CALLS_MAX_CHARACTERS) throw tooMuch(`${TOOL_CALLS_MAX_CHARACTERS} characters`);
        break;
      case 'tool-call':
        calls.push({ type: 'toolCall', name: part.toolName, input: inputOf(part.input) });
        if (calls.length > TOOL_CALLS_MAX) throw tooMuch(`${TOOL_CALLS_MAX} calls`);
        break;
      case 'error':
        throw connection.failureOf(part.error);
      case 'finish': {
        const reason = reasonOf(part.finishReason, calls.length > 0);
        if (reason !== 'refusal') yield* calls;
        yield { type: 'finish', reason, usage: usageOf(part.usage) };
        return;
      }
    }
  }
}

function tooMuch(limit: string): ModelFailure {
  return new ModelFailure('model_protocol', `The model’s tool calls come to more than ${limit}`, { retryable: true });
}

/** What is not JSON, or is nested too deeply to be stored, stays text: no tool's schema takes that, and the model is told. */
function inputOf(text: string): unknown {
  return text.trim() === '' ? {} : (parseJson(text) ?? text);
}

function reasonOf(
  { unified, raw }: LanguageModelV4FinishReason,
  hasCalls: boolean,
): Extract<ModelEvent, { type: 'finish' }>['reason'] {
  // The second is DeepSeek's word for being overloaded in the middle of an answer.
  if (unified === 'error' || raw === 'error' || raw === 'insufficient_system_resource') {
    throw new ModelFailure('model_unavailable', 'The model broke off its answer with an error', { retryable: true });
  }
  if (unified === 'content-filter') return 'refusal';
  if (unified === 'length') return 'length';
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
