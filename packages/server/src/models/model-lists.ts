// How each provider lists its models: `GET <base url>/models`, and what differs.
import type { ProviderName } from '@signalbox/contract';

export interface ListedModel {
  readonly model: string;
  readonly displayName?: string | undefined;
  readonly contextTokens?: number | undefined;
}

interface ModelListing {
  readonly query?: Readonly<Record<string, string>>;
  /** Where the provider's own server has the list. Default: `/models` below the base URL. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the list of the provider's own server is, if that is at another server: all of these are requested. */
  elsewhere?(baseUrl: URL): URL[];
  /** `bodies`: the response, or those from `elsewhere`. Undefined if one is not a list. */
  read(...bodies: unknown[]): ListedModel[] | undefined;
}

/** Models that can't hold a conversation, by their names: providers that list them do not say so. */
const NO_TEXT =
  /embed|whisper|tts|dall-e|moderation|(^|-)image|realtime|transcribe|sora|babbage|davinci|audio|(^|\/)veo|imagen|aqa|rerank/i;

/** The most that these providers return at once, and more than they have. */
const ALL = '1000';

const openai: ModelListing = {
  read: (body) => itemsOf(body, 'data', ({ id }) => (NO_TEXT.test(String(id)) ? undefined : { model: id })),
};

const listings: Partial<Record<ProviderName, ModelListing>> = {
  anthropic: {
    query: { limit: ALL },
    headers: { 'anthropic-version': '2023-06-01' },
    read: (body) => itemsOf(body, 'data', ({ id, display_name }) => ({ model: id, displayName: display_name })),
  },
  google: {
    query: { pageSize: ALL },
    read: (body) =>
      itemsOf(body, 'models', ({ name, displayName, inputTokenLimit, supportedGenerationMethods: methods }) =>
        Array.isArray(methods) && methods.includes('generateContent') && !NO_TEXT.test(String(name))
          ? { model: String(name).replace(/^models\//, ''), displayName, contextTokens: inputTokenLimit }
          : undefined,
      ),
  },
  // All that Google publishes, for any project. Those for conversations are called Gemini.
  vertex: {
    path: '/v1beta1/publishers/google/models',
    query: { pageSize: ALL },
    read: (body) =>
      itemsOf(body, 'publisherModels', ({ name }) => {
        const model = String(name).replace(/^.*\/models\//, '');
        return /^gemini/.test(model) && !NO_TEXT.test(model) ? { model } : undefined;
      }),
  },
  // A model that can't be called by its own ID has inference profiles.
  bedrock: {
    elsewhere(baseUrl) {
      const at = (path: string) => new URL(path, baseUrl.origin.replace('bedrock-runtime', 'bedrock'));
      // Profiles that an account makes are named by ARNs, which have its number.
      return [at('/foundation-models'), at(`/inference-profiles?maxResults=${ALL}&type=SYSTEM_DEFINED`)];
    },
    read: readBedrock,
  },
  'openai-compatible': {
    // Gateways and vLLM say how long a conversation may be, each in its own way.
    read: (body) =>
      itemsOf(body, 'data', ({ id, name, context_length, context_window, max_model_len }) =>
        NO_TEXT.test(String(id))
          ? undefined
          : {
              model: id,
              displayName: name,
              contextTokens: [context_length, context_window, max_model_len].find((one) => typeof one === 'number'),
            },
      ),
  },
};

function readBedrock(models: unknown, profiles: unknown): ListedModel[] | undefined {
  const unsuitable = new Set<string>();
  const own = itemsOf(models, 'modelSummaries', ({ modelId: model, modelName: displayName, ...facts }) => {
    const { outputModalities: outputs, inferenceTypesSupported: types, responseStreamingSupported: streams } = facts;
    if (!includes(outputs, 'TEXT') || streams === false || NO_TEXT.test(String(model))) unsuitable.add(String(model));
    else if (includes(types, 'ON_DEMAND')) return { model, displayName };
    return undefined;
  });
  const ofProfiles = itemsOf(profiles, 'inferenceProfileSummaries', (profile) => {
    const { inferenceProfileId: model, inferenceProfileName: displayName, status, models: parts } = profile;
    const names = (Array.isArray(parts) ? parts : []).map((one) =>
      String(isRecord(one) && one.modelArn)
        .split('/')
        .at(-1),
    );
    const isSuitable = !NO_TEXT.test(String(model)) && !names.some((name) => unsuitable.has(String(name)));
    return status === 'ACTIVE' && isSuitable ? { model, displayName } : undefined;
  });
  return own && ofProfiles && [...own, ...ofProfiles];
}

function includes(list: unknown, item: string): boolean {
  return Array.isArray(list) && list.includes(item);
}

export function offeredBy(provider: ProviderName): ModelListing {
  return listings[provider] ?? openai;
}

type Raw = Record<string, unknown>;

function itemsOf(body: unknown, field: string, read: (item: Raw) => Record<keyof Raw, unknown> | undefined) {
  const items = isRecord(body) ? body[field] : undefined;
  if (!Array.isArray(items)) return undefined;
  return items.filter(isRecord).flatMap((item): ListedModel[] => {
    const { model, displayName, contextTokens } = read(item) ?? {};
    if (typeof model !== 'string') return [];
    return [
      {
        model,
        ...(typeof displayName === 'string' && displayName !== model && { displayName }),
        ...(Number.isSafeInteger(contextTokens) &&
          Number(contextTokens) > 0 && { contextTokens: Number(contextTokens) }),
      },
    ];
  });
}

function isRecord(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
