// The request of a model call, as its provider's package makes it: to be sent, or to look something up in it.
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { isServerOf, webSearchName } from '@signalbox/contract';
import { type ModelCall, ModelFailure } from '../model/model.ts';
import { promptRulesOf } from '../model/prompt-rules.ts';
import { addressOf, targetOf } from '../model/targets.ts';
import { toCallOptions } from '../prompt/prompt.ts';
import type { PromptFiles } from '../prompt/prompt-files.ts';
import type { Provider } from './provider.ts';

/** All that decides about the body of a request. `isMarked`: with marks in place of the messages (message-marks.ts). */
export function optionsOf(
  provider: Provider,
  call: ModelCall,
  files: PromptFiles,
  baseUrl: URL,
  { isMarked = false } = {},
): LanguageModelV4CallOptions {
  const { name, takesSchema, takesToolFiles } = provider;
  const search = call.webSearch && provider.search?.tool(call.webSearch);
  const isOwn = isServerOf(provider.name, baseUrl);
  const prompt = toCallOptions(call, files, {
    takesSchema: takesSchema && (!search || provider.search?.takesSchema === true),
    takesToolFiles,
    ...(search && { search: { type: 'provider', name: webSearchName, ...search } }),
    target: targetOf(name, baseUrl),
    rules: promptRulesOf(targetOf(name, baseUrl), call),
    cachePoint: isOwn ? provider.cachePoint?.(call.config.model ?? '') : undefined,
    isMarked,
  });
  return { ...prompt, ...(provider.options && { providerOptions: provider.options(isOwn, call) }) };
}

export interface UnsentRequest {
  /** Without the query of the base URL. */
  readonly url: URL;
  readonly init: RequestInit;
}

/** The same request, which is not sent. Undefined if the package makes none. */
export async function unsentRequest(
  provider: Provider,
  call: ModelCall,
  files: PromptFiles,
  options?: { isMarked?: boolean },
): Promise<UnsentRequest | undefined> {
  const { model } = call.config;
  if (model === undefined) return undefined;
  const baseUrl = baseUrlOf(call);
  let made: UnsentRequest | undefined;
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    made = { url: new URL(input instanceof Request ? input.url : input), init };
    throw new TypeError('This request is not sent');
  };
  const sdk = await provider.model(model, { baseURL: withoutQuery(baseUrl), fetch });
  await sdk.doStream(optionsOf(provider, call, files, baseUrl, options)).then(
    () => {},
    () => {},
  );
  return made;
}

/** For a package that adds its own path. */
export function withoutQuery({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, '');
}

export function baseUrlOf({ config }: Pick<ModelCall, 'config'>): URL {
  const url = addressOf(config);
  if (url === null) throw unusable('The model has no base url');
  return url;
}

export function unusable(why: string): ModelFailure {
  return new ModelFailure('model_rejected', why, { retryable: false });
}
