// The secrets that a definition needs, which the console and the doctor look for.
import { cloudUrlForm, isServerOf, ownProvider, type ProviderName, usualKeyName } from './providers.ts';

export interface NeededSecret {
  name: string;
  /** The provider whose usual key it is: the operator may provide one instead. */
  provider?: string;
  /** The server of a cloud whose usual key it is: the operator may allow an identity there instead. */
  cloud?: { provider: ProviderName; baseUrl: string };
}

/** A definition, which may still be typed: each part can be anything. */
interface Parts {
  /** As an object. */
  model: Readonly<Record<string, unknown>>;
  tools: unknown;
}

/** By name. */
export function neededSecrets({ model, tools }: Parts): NeededSecret[] {
  const { fallbacks, compaction } = model;
  const found = new Map<string, NeededSecret>();
  for (const one of [model, ...(Array.isArray(fallbacks) ? fallbacks : []), compaction]) {
    const { provider, baseUrl, apiKeySecret } = (one ?? {}) as Readonly<Record<string, unknown>>;
    const own = baseUrl === undefined ? ownProvider(String(provider)) : undefined;
    const cloudKey = cloudUrlForm(String(provider)) && usualKeyName(String(provider));
    if (typeof apiKeySecret === 'string' && apiKeySecret !== '') found.set(apiKeySecret, { name: apiKeySecret });
    else if (cloudKey) {
      const url = URL.parse(String(baseUrl));
      const isOwn = url !== null && isServerOf(String(provider), url);
      const cloud = { provider: provider as ProviderName, baseUrl: String(baseUrl) };
      // A gateway needs the key in any case.
      if (isOwn && !found.has(cloudKey)) found.set(cloudKey, { name: cloudKey, cloud });
      else if (!isOwn) found.set(cloudKey, { name: cloudKey });
    } else if (own && !found.has(own.keyName)) found.set(own.keyName, { name: own.keyName, provider: own.name });
  }
  for (const [, name] of JSON.stringify(tools ?? []).matchAll(/\{\{\s*secrets\.([A-Z][A-Z0-9_]*)\s*\}\}/g)) {
    found.set(name!, { name: name! });
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
