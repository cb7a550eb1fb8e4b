// A provider's model, as the turn machine calls it. What providers have in common is here and in the files that this one imports;
// the few lines that differ are in the file named after the provider.
//
// An `@ai-sdk/*` package knows the provider's wire format and its dialects. We call its provider API (`doStream`), which sends one
// request without retries. The key, the address and the connection are ours (find-key.ts, provider-connection.ts), and so is
// the conversion of the stream into events (response.ts).
import type { LanguageModelV4, LanguageModelV4StreamPart, SharedV4ProviderOptions } from '@ai-sdk/provider';
import type { Model, ProviderName } from '@signalbox/contract';
import type { OrganizationEgress } from '../../egress/egress.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Platform } from '../../platform.ts';
import type { OmittedFromRequest } from '../../session-rows/operation-trace.ts';
import type { TokenUsage } from '../../session-rows/operations.ts';
import { createRedaction, createStreamRedaction } from '../../tools/tool/redact.ts';
import type { AccessTokens } from '../keys/access-tokens.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from '../model/model.ts';
import type { ProviderError } from '../model/provider-error.ts';
import type { ProviderKey } from '../model/provider-key.ts';
import { createLearned } from '../model/refused-parameters.ts';
import { targetOf } from '../model/targets.ts';
import { NOTHING_USED, sumOf } from '../model/usage.ts';
import { loadPromptFiles, type PromptFiles } from '../prompt/prompt-files.ts';
import { dependsOnProviderData, withoutProviderData } from '../prompt/provider-data.ts';
import type { Framing } from '../response/event-frames.ts';
import type { EventReader } from '../response/response-events.ts';
import { sentTools } from '../tools/tools.ts';
import type { FindKey } from './find-key.ts';
import { continued } from './paused.ts';
import { openConnection, type ProviderConnection, type Refusal } from './provider-connection.ts';
import { namingRefused } from './refused-parts.ts';
import { baseUrlOf, optionsOf, unusable, withoutQuery } from './request.ts';
import { readResponse } from './response.ts';
import { createParts, EmptyResponse } from './response-parts.ts';

export interface Provider {
  /** Its label, server and key are in the contract's table (providers.ts). */
  readonly name: ProviderName;
  /** The header for the key, and the prefix of the key in it. */
  readonly keyHeader: readonly [name: string, prefix: string];
  /** The key that a secret is, if it is not to be sent as it is. Undefined: it is. */
  keyFrom?(secret: SecretKey, context: KeyContext): Promise<ProviderKey> | undefined;
  /** Whether it accepts a response schema together with tools. If not, the schema is put into the instructions. */
  readonly takesSchema: boolean;
  /** Whether a tool's result can have files. If not, they follow in a message of their own. */
  readonly takesToolFiles: boolean;
  /** Options of a call. `isOwn`: the request goes to the provider's own server. */
  options?(isOwn: boolean, call: ModelCall): SharedV4ProviderOptions;
  /** Its own web search, if it has one. */
  readonly search?: ProviderSearch;
  /** Whether `options` request the model's reasoning if it is to be shown: a server may refuse that. */
  readonly asksForReasoning?: boolean;
  /** Options that mark a part of the prompt up to which it is cached, if the provider's own server caches this model only on request. */
  cachePoint?(model: string): SharedV4ProviderOptions | undefined;
  /** Whether models write their reasoning into the text, because their server does not know it: `<think>…</think>`. */
  readonly thinksInText?: boolean;
  /** Whether a response with nothing in it is a mistake that another response usually does not have. */
  readonly repeatsEmpty?: boolean;
  /** What to change in the agent, for a refusal that the provider puts in words of its own. */
  explain?(error: ProviderError, model: Model, baseUrl: URL): string | undefined;
  /** How its responses are framed. Undefined: as server-sent events. */
  framing?(): Promise<Framing>;
  /** Makes the events of a response what the SDK takes. */
  reader(): EventReader;
  /**
   * `baseURL` has neither a query nor a trailing slash. The SDK's `apiKey` is not sent: `fetch` adds the key. Imports the SDK with
   * the first call, because few installations use every provider.
   */
  model(name: string, server: { baseURL: string; fetch: typeof globalThis.fetch }): Promise<LanguageModelV4>;
}

/** A secret of the environment, with the hosts that it may be sent to. */
export interface SecretKey extends ProviderKey {
  readonly allowedHosts: readonly string[];
}

/** What a key depends on that is not sent as it is. */
export interface KeyContext {
  readonly organizationId: string;
  readonly baseUrl: URL;
  readonly egress: OrganizationEgress;
  readonly clock: Clock;
  readonly tokens: AccessTokens;
}

export interface ProviderSearch {
  /** The tool of the provider's package, by its id. */
  tool(search: NonNullable<ModelCall['webSearch']>): { id: `${string}.${string}`; args: Record<string, unknown> };
  /** Whether a request can have a response schema together with it. */
  readonly takesSchema: boolean;
}

/** Each is found with one more request, which has all the other files. */
const REFUSED_FILES_MAX = 50;

export function createProviderModel(
  provider: Provider,
  platform: Pick<Platform, 'db' | 'egress' | 'clock' | 'files' | 'memory'>,
  findKey: FindKey,
): AskModel {
  const learned = createLearned();

  async function* askOnce(call: ModelCall, signal: AbortSignal, refusal: Refusal): AsyncGenerator<ModelEvent> {
    signal.throwIfAborted();
    const { model } = call.config;
    if (model === undefined) throw unusable('The agent names no model');
    const baseUrl = baseUrlOf(call);
    const key = await findKey(provider, call, baseUrl);
    signal.throwIfAborted();
    const egress = platform.egress.of(call.organizationId);
    const { keyHeader, reader } = provider;
    const framing = await provider.framing?.();
    const { withoutParameters = [] } = call;
    const target = { baseUrl, keyHeader, key, reader, framing, withoutParameters, refusal };
    const tools = sentTools(targetOf(provider.name, baseUrl), call.tools);
    const connection = openConnection({ egress, clock: platform.clock }, target, signal);
    let files: PromptFiles | undefined;
    try {
      const sdk = await provider.model(model, { baseURL: withoutQuery(baseUrl), fetch: connection.fetch });
      const onFiles = (loaded: PromptFiles) => {
        files = loaded.withPlaceholders();
      };
      const stream = await startStream(call, sdk, baseUrl, connection, onFiles, signal);
      const redaction = {
        redact: createRedaction(key === undefined ? {} : { [key.name]: key.value }),
        stream: () => createStreamRedaction(key?.name ?? '', key?.value ?? ''),
      };
      const asked = { ...call, tools: tools.definitions };
      const parts = stream.pipeThrough(createParts(provider, asked, () => connection.webSearches));
      const events = readResponse(parts, provider, { ...call, tools }, connection, redaction, signal);
      yield* lacking(withoutParameters, events);
    } catch (error) {
      // No error of a provider passes this point, because it contains the prompt. After an abort, the abort's reason is thrown.
      signal.throwIfAborted();
      const failure = connection.failureOf(error);
      if (!failure.isRefusal)
        throw await namingRefused(failure, connection.error, { provider, call, baseUrl, files, tools });
      // What was said before stays. The provider does not say what it has used.
      yield { type: 'finish', reason: 'refusal', usage: NOTHING_USED };
    } finally {
      connection.close();
    }
  }

  /** Sends the request. A function of its own, so that nothing of a prompt with files stays in memory while the response arrives. */
  async function startStream(
    call: ModelCall,
    sdk: LanguageModelV4,
    baseUrl: URL,
    connection: ProviderConnection,
    onFiles: (files: PromptFiles) => void,
    signal: AbortSignal,
  ): Promise<ReadableStream<LanguageModelV4StreamPart>> {
    const files = await loadPromptFiles(platform, call, signal);
    onFiles(files);
    connection.media = files.media;
    try {
      const started = sdk.doStream({ ...optionsOf(provider, call, files, baseUrl), abortSignal: connection.signal });
      return (await connection.wait(started)).stream;
    } finally {
      files.release();
    }
  }

  function askWhole(call: ModelCall, signal: AbortSignal, refusal: Refusal): AsyncGenerator<ModelEvent> {
    return call.webSearch ? continued(call, (one) => askOnce(one, signal, refusal)) : askOnce(call, signal, refusal);
  }

  async function* askAccepted(call: ModelCall, signal: AbortSignal, refusal: Refusal): AsyncGenerator<ModelEvent> {
    let hasShown = false;
    try {
      for await (const event of askWhole(call, signal, refusal)) {
        hasShown = true;
        yield event;
      }
    } catch (error) {
      const news = error instanceof ModelFailure && !hasShown ? learned.from(call, error) : undefined;
      if (news) return yield* askAccepted({ ...call, ...news }, signal, refusal);
      const file = error instanceof ModelFailure && !hasShown ? error.refusedFile : undefined;
      const { refusedFiles = [] } = call;
      if (file && !refusedFiles.includes(file.fileId) && refusedFiles.length < REFUSED_FILES_MAX) {
        const without = { ...call, refusedFiles: [...refusedFiles, file.fileId] };
        return yield* finding(file.fileId, askAccepted(without, signal, refusal));
      }
      // The provider may no longer accept its own data from earlier steps, or may not show this account its model's reasoning. The
      // session can continue without either.
      const isBadRequest =
        error instanceof ModelFailure &&
        (error.httpStatus === 400 || error.httpStatus === 422) &&
        error.code === 'model_rejected' &&
        error.isOfRequest;
      // The definitions of tools have nothing to do with either.
      if (!isBadRequest || hasShown || error.param?.startsWith('tools')) throw error;
      if (call.shows?.reasoning && provider.asksForReasoning) {
        return yield* lacking(['reasoning'], askAccepted(withoutShownReasoning(call), signal, refusal));
      }
      if (!dependsOnProviderData(call)) throw error;
      yield* lacking(['providerData'], askWhole(withoutProviderData(call), signal, refusal));
    }
  }

  return async function* ask(asked, signal) {
    const call = { ...asked, ...learned.of(asked) };
    let used: TokenUsage = NOTHING_USED;
    for (const isSecond of [false, true]) {
      try {
        for await (const event of askAccepted(call, signal, {})) {
          yield event.type === 'finish' ? { ...event, usage: sumOf(used, event.usage) } : event;
        }
        return;
      } catch (error) {
        if (!(error instanceof EmptyResponse)) throw error;
        used = sumOf(used, error.usage ?? NOTHING_USED);
        if (isSecond) throw new EmptyResponse(used, true);
      }
    }
  };
}

/** The same call that does not ask for reasoning to show. */
export function withoutShownReasoning(call: ModelCall): ModelCall {
  return { ...call, shows: { ...call.shows, reasoning: false } };
}

/** Says in the last event what the request lacked. */
async function* lacking(
  what: readonly OmittedFromRequest[],
  events: AsyncGenerator<ModelEvent>,
): AsyncGenerator<ModelEvent> {
  for await (const event of events) {
    if (event.type !== 'finish' || what.length === 0) yield event;
    else yield { ...event, sentWithout: [...what, ...(event.sentWithout ?? [])] };
  }
}

/** Says in the last event which file the provider refused. */
async function* finding(fileId: string, events: AsyncGenerator<ModelEvent>): AsyncGenerator<ModelEvent> {
  for await (const event of events) {
    yield event.type === 'finish' ? { ...event, refusedFiles: [fileId, ...(event.refusedFiles ?? [])] } : event;
  }
}
