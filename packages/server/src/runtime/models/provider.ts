// A provider's model as the turn machine asks it. What providers have in common is here and in the files it leads to; what
// differs, a few lines for each, is in the file of the provider's name.
//
// A provider of `@ai-sdk/*` knows its wire format and its dialects. It is called at its own interface (`doStream`), which makes
// one request and repeats nothing. Key, address and connection are ours (provider-key.ts, provider-connection.ts), so is what is
// made of the stream (answer.ts).
import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { ownProvider, type ProviderName } from '@signalbox/contract';
import type { Platform } from '../../platform.ts';
import type { ProviderKeys } from '../../vault/provider-keys.ts';
import { createRedaction, createStreamRedaction } from '../tools/redact.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from './model.ts';
import { toCallOptions } from './prompt.ts';
import { openConnection } from './provider-connection.ts';
import { hasProviderData, withoutProviderData } from './provider-data.ts';
import { keyFor } from './provider-key.ts';
import { readResponse } from './response.ts';

export interface Provider {
  /** Its label, server and key are in the contract's table (providers.ts). */
  readonly name: ProviderName;
  /** The header that carries the key, and what stands before the key in it. */
  readonly keyHeader: readonly [name: string, prefix: string];
  /** Whether it can be told the schema of the answer beside tools. Where not, the instructions say it. */
  readonly takesSchema: boolean;
  /** What is said with every call. `isOwn`: at the provider's own server. */
  options?(isOwn: boolean): SharedV4ProviderOptions;
  /** Whether an event that the SDK can't read is one that clients are to pass over. */
  passesOver?(event: unknown): boolean;
  /**
   * `baseURL` has neither a query nor a slash at its end. The key of `fetch` counts: what is given as `apiKey` is not sent. Loads the
   * SDK with the first call: few use each of them.
   */
  model(name: string, server: { baseURL: string; fetch: typeof globalThis.fetch }): Promise<LanguageModelV4>;
}

/** What an SDK is given for a key, so that it doesn't look for one in the environment. The connection replaces it. */
export const NO_KEY = 'set-by-the-connection';

export function createProviderModel(
  provider: Provider,
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock'>,
  keys: ProviderKeys,
): AskModel {
  async function* askOnce(call: ModelCall, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    signal.throwIfAborted();
    const { model } = call.config;
    if (model === undefined) throw unusable('The Agent names no model');
    const baseUrl = baseUrlOf(provider, call);
    const isOwn = isOwnServer(provider, baseUrl);
    const { name = '', value: key } = (await keyFor(platform, provider, call, baseUrl, keys)) ?? {};
    signal.throwIfAborted();
    const connection = openConnection(platform, { baseUrl, keyHeader: provider.keyHeader, key }, signal);
    try {
      const baseURL = baseUrl.origin + baseUrl.pathname.replace(/\/+$/, '');
      const sdk = await provider.model(model, { baseURL, fetch: connection.fetch });
      const { stream } = await connection.wait(
        sdk.doStream({
          ...toCallOptions(call, provider.takesSchema),
          ...(provider.options && { providerOptions: provider.options(isOwn) }),
          abortSignal: connection.signal,
        }),
      );
      const redaction = {
        redact: createRedaction(key === undefined ? {} : { [name]: key }),
        text: createStreamRedaction(name, key ?? ''),
      };
      yield* readResponse(stream, provider, model, connection, redaction, signal);
    } catch (error) {
      // Errors end here: a provider's holds the prompt, and whichever one an abort brings about, the abort is the reason.
      signal.throwIfAborted();
      throw connection.failureOf(error);
    } finally {
      connection.close();
    }
  }

  return async function* ask(call, signal) {
    let hasShown = false;
    try {
      for await (const event of askOnce(call, signal)) {
        hasShown = true;
        yield event;
      }
    } catch (error) {
      // Its own data of before may be what the provider does not take any more, and the Session can go on without.
      const isBadRequest = error instanceof ModelFailure && error.httpStatus === 400;
      if (!isBadRequest || hasShown || !hasProviderData(call)) throw error;
      yield* askOnce(withoutProviderData(call), signal);
    }
  };
}

/** By scheme, host and port. */
export function isOwnServer({ name }: Provider, baseUrl: URL): boolean {
  const own = ownProvider(name);
  return own !== undefined && baseUrl.origin === new URL(own.baseUrl).origin;
}

function baseUrlOf({ name }: Provider, { config }: ModelCall): URL {
  const url = URL.parse(config.baseUrl ?? ownProvider(name)?.baseUrl ?? '');
  if (url === null) throw unusable('The model has no base url');
  return url;
}

function unusable(why: string): ModelFailure {
  return new ModelFailure('model_rejected', why, { retryable: false });
}
