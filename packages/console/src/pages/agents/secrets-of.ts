// The secrets that a definition needs.
import { cloudUrlForm, ownProvider, usualKeyName } from '@signalbox/contract';
import type { Definition } from './definition.ts';
import { isRecord, modelOf } from './model.ts';

export interface NeededSecret {
  name: string;
  /** The provider whose usual key it is: the operator may provide one instead. */
  provider?: string;
}

/** By name. */
export function secretsOf(definition: Definition): NeededSecret[] {
  const model = modelOf(definition.model);
  const fallbacks = Array.isArray(model.fallbacks) ? model.fallbacks : [];
  const found = new Map<string, NeededSecret>();
  for (const one of [model, ...fallbacks, model.compaction].filter(isRecord)) {
    const { provider, baseUrl, apiKeySecret } = one;
    const own = baseUrl === undefined ? ownProvider(String(provider)) : undefined;
    const cloudKey = cloudUrlForm(String(provider)) && usualKeyName(String(provider));
    if (typeof apiKeySecret === 'string' && apiKeySecret !== '') found.set(apiKeySecret, { name: apiKeySecret });
    else if (cloudKey) found.set(cloudKey, { name: cloudKey });
    else if (own && !found.has(own.keyName)) found.set(own.keyName, { name: own.keyName, provider: own.name });
  }
  for (const [, name] of JSON.stringify(definition.tools ?? []).matchAll(/\{\{\s*secrets\.([A-Z][A-Z0-9_]*)\s*\}\}/g)) {
    found.set(name!, { name: name! });
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
