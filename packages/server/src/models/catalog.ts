// The models that a provider offers, as its own list says: for people who choose one. No turn depends on it.
//
// The list is requested with the key that an agent would use, so it has what this account may use. It is kept for a few minutes, for
// each environment, server and key; many requests at once share one. Everything that the provider sends is limited and redacted.
import { createHash } from 'node:crypto';
import {
  type InputMedia,
  isServerOf,
  type ModelList,
  modelFacts,
  type OfferedModel,
  type ProviderName,
  providerFacts,
} from '@signalbox/contract';
import { isAllowedHost } from '../environments/secrets.ts';
import { parseJson } from '../lib/json/json.ts';
import type { Platform } from '../platform.ts';
import { createRedaction, type Redact } from '../tools/tool/redact.ts';
import { shownText } from '../tools/tool/result.ts';
import { announcedEnd, type CalledModel } from '../usage/known-models.ts';
import { refusalOf, toModelFailure } from './failure/provider-failure.ts';
import { type ModelCall, ModelFailure } from './model/model.ts';
import { authenticate, type ProviderKey } from './model/provider-key.ts';
import { type ListedModel, offeredBy } from './model-lists.ts';
import type { FindKey } from './providers/find-key.ts';
import type { Provider } from './providers/provider.ts';
import { providerOf } from './providers/providers.ts';
import { baseUrlOf } from './providers/request.ts';

/** Whose list is requested. */
export type CatalogRequest = Pick<ModelCall, 'organizationId' | 'environment' | 'config'>;

export interface ModelCatalog {
  /** A failure of the provider or of its key is the list's `problem`. */
  list(request: CatalogRequest): Promise<ModelList>;
}

const TIMEOUT_MS = 10_000;
/** Lists of gateways with all models of all providers have about a megabyte. */
const RESPONSE_MAX_BYTES = 4 * 1024 * 1024;
const MAX_MODELS = 2_000;
const NAME_MAX_CHARACTERS = 200;
const KEPT_MS = 300_000;
/** A person who has just set the key tries again. */
const FAILURE_KEPT_MS = 5_000;
const MAX_KEPT = 256;

export function createModelCatalog(
  platform: Pick<Platform, 'egress' | 'clock' | 'prices'>,
  findKey: FindKey,
): ModelCatalog {
  const { clock, egress, prices } = platform;
  const kept = new Map<string, { until: number; list: Promise<ModelList> }>();

  /** Undefined if the response is not JSON, or too long. */
  async function fetchBody(
    organizationId: string,
    provider: Provider,
    { url, headers: own }: { url: URL; headers: Readonly<Record<string, string>> },
    key: ProviderKey | undefined,
  ): Promise<unknown> {
    const headers = new Headers({ Accept: 'application/json', 'User-Agent': 'Signalbox', ...own });
    await authenticate({ method: 'GET', url, headers, body: '' }, key, provider.keyHeader);
    const { status, body, truncated, ...response } = await egress.of(organizationId).request({
      method: 'GET',
      url: url.href,
      headers: Object.fromEntries(headers),
      timeoutMs: TIMEOUT_MS,
      maxResponseBytes: RESPONSE_MAX_BYTES,
      repeatable: true,
    });
    if (status < 200 || status >= 300) {
      const { 'x-amzn-errortype': type } = response.headers;
      const init = { status, ...(typeof type === 'string' && { headers: { 'x-amzn-errortype': type } }) };
      const { failure } = await refusalOf(new Response(body.toString(), init), { key, body: '' }, clock);
      throw failure;
    }
    return truncated ? undefined : parseJson(body.toString('utf8'));
  }

  async function fetchList(
    organizationId: string,
    provider: Provider,
    baseUrl: URL,
    key: ProviderKey | undefined,
  ): Promise<ListedModel[]> {
    const listing = offeredBy(provider.name);
    const others = isServerOf(provider.name, baseUrl) ? listing.elsewhere?.(baseUrl) : undefined;
    for (const url of others ?? []) requireSendable(provider.name, key, url);
    const urls = others ?? [listUrlOf(provider.name, baseUrl)];
    const headers = listing.headers ?? {};
    const bodies = await Promise.all(urls.map((url) => fetchBody(organizationId, provider, { url, headers }, key)));
    const listed = listing.read(...bodies);
    if (!listed)
      throw new ModelFailure('model_protocol', 'The provider’s response is not a list of models', { retryable: false });
    return listed.slice(0, MAX_MODELS);
  }

  function knownOf(model: CalledModel): Pick<OfferedModel, 'prices' | 'endsAt' | 'replacement'> {
    return { prices: prices.of(model), ...announcedEnd(model) };
  }

  function view({ name }: Provider, baseUrl: URL, listed: readonly ListedModel[], redact: Redact): OfferedModel[] {
    const models = new Map<string, OfferedModel>();
    for (const one of listed) {
      const model = shownText(one.model, redact);
      if (model === '' || model.length > NAME_MAX_CHARACTERS || model !== one.model) continue;
      const facts = modelFacts({ provider: name, model });
      models.set(model, {
        model,
        displayName: one.displayName ? shownText(one.displayName.slice(0, NAME_MAX_CHARACTERS), redact) : null,
        contextTokens: facts.contextTokens ?? one.contextTokens ?? null,
        input: facts.input === null ? null : [...(facts.input as readonly InputMedia[])],
        ...knownOf({ provider: name, model, baseUrl: baseUrl.href }),
      });
    }
    return [...models.values()].sort((one, other) => (one.model < other.model ? -1 : 1));
  }

  async function read(
    organizationId: string,
    provider: Provider,
    baseUrl: URL,
    key: ProviderKey | undefined,
  ): Promise<ModelList> {
    const dated = { listedAt: clock.now().toISOString(), pricesDate: prices.builtInDate };
    try {
      const listed = await fetchList(organizationId, provider, baseUrl, key);
      const redact = createRedaction(key ? { [key.name]: key.value } : {});
      return { models: view(provider, baseUrl, listed, redact), problem: null, ...dated };
    } catch (error) {
      return { models: [], problem: problemOf(toModelFailure(error, false)), ...dated };
    }
  }

  function keep(id: string, list: Promise<ModelList>): Promise<ModelList> {
    const now = clock.now().getTime();
    for (const [other, { until }] of kept) if (until <= now || kept.size >= MAX_KEPT) kept.delete(other);
    const entry = { until: now + KEPT_MS, list };
    kept.set(id, entry);
    void list.then(({ problem }) => {
      if (problem) entry.until = clock.now().getTime() + FAILURE_KEPT_MS;
    });
    return list;
  }

  return {
    async list(request) {
      const { organizationId, environment, config } = request;
      const dated = { listedAt: clock.now().toISOString(), pricesDate: prices.builtInDate };
      const provider = providerOf(config.provider);
      if (!provider) {
        // A script answers to any name.
        const scripted = { model: 'scripted', displayName: 'Responds from a script', contextTokens: null, input: null };
        return {
          models: [{ ...scripted, ...knownOf({ provider: 'scripted', model: 'scripted' }) }],
          problem: null,
          ...dated,
        };
      }
      try {
        const baseUrl = baseUrlOf(request);
        const key = await findKey(provider, request, baseUrl);
        const secret = createHash('sha256')
          .update(key?.value ?? '')
          .digest('base64');
        const id = JSON.stringify([organizationId, environment, provider.name, baseUrl.href, key?.name, secret]);
        const known = kept.get(id);
        if (known && known.until > clock.now().getTime()) return await known.list;
        return await keep(id, read(organizationId, provider, baseUrl, key));
      } catch (error) {
        if (!(error instanceof ModelFailure)) throw error;
        return { models: [], problem: problemOf(error), ...dated };
      }
    },
  };
}

/** The list of the server of a base URL. */
function listUrlOf(provider: ProviderName, baseUrl: URL): URL {
  const { query = {}, path } = offeredBy(provider);
  const url = new URL(baseUrl.origin);
  const isOwn = isServerOf(provider, baseUrl);
  url.pathname = isOwn && path !== undefined ? path : `${baseUrl.pathname.replace(/\/+$/, '')}/models`;
  for (const [name, value] of [...baseUrl.searchParams, ...Object.entries(query)]) url.searchParams.append(name, value);
  return url;
}

/** Throws `model_not_allowed` if the key is sent as it is, and may not be sent to this server. */
function requireSendable(provider: ProviderName, key: ProviderKey | undefined, url: URL): void {
  if (key === undefined || key.isOnlySigning || isAllowedHost(key.allowedHosts ?? [], url)) return;
  const why = `${providerFacts[provider].label} lists its models at ${url.host}: add this host to the allowedHosts of ${key.label}, or enter the model’s ID`;
  throw new ModelFailure('model_not_allowed', why, { retryable: false });
}

function problemOf({ code, message }: ModelFailure): ModelList['problem'] {
  return { code, message };
}
