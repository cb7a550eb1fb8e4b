// The models that an agent can use, one implementation for each provider of the contract.
import type { ProviderName } from '@signalbox/contract';
import type { Platform } from '../platform.ts';
import type { ProviderKeys } from '../vault/provider-keys.ts';
import { createAvailability } from './availability.ts';
import { createModelCatalog, type ModelCatalog } from './catalog.ts';
import type { AskModel } from './model/model.ts';
import { createFindKey } from './providers/find-key.ts';
import { createProviderModel } from './providers/provider.ts';
import { calledProviders } from './providers/providers.ts';
import { createRecovery } from './recovery.ts';
import { createScriptedModel } from './scripted.ts';

/** The lists of the providers' models. `keys`: as for `createModels`. */
export function createCatalog(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'prices'>,
  keys: ProviderKeys = {},
): ModelCatalog {
  return createModelCatalog(platform, createFindKey(platform, keys));
}

/** `keys`: the operator's keys, used for agents whose environment has none. */
export function createModels(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'files' | 'memory' | 'wake' | 'log'>,
  keys: ProviderKeys = {},
): AskModel {
  const ifAvailable = createAvailability(platform.clock, createRecovery(platform));
  const findKey = createFindKey(platform, keys);
  const models = new Map<ProviderName, AskModel>([
    ['scripted', createScriptedModel(platform.clock)],
    ...Object.values(calledProviders).map(
      (provider) => [provider.name, ifAvailable(createProviderModel(provider, platform, findKey))] as const,
    ),
  ]);
  return (call, signal) => {
    const ask = models.get(call.config.provider);
    if (!ask) throw new TypeError('A step of a worker is run by its own program, not asked for');
    return ask(call, signal);
  };
}
