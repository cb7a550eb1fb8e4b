// The models that an agent can use, one implementation for each provider of the contract.
import type { ProviderName } from '@signalbox/contract';
import type { Platform } from '../platform.ts';
import type { ProviderKeys } from '../vault/provider-keys.ts';
import { createAvailability } from './availability.ts';
import { createModelCatalog, type ModelCatalog } from './catalog.ts';
import type { Identities } from './identities/identities.ts';
import type { ModelLimits } from './limits/model-limits.ts';
import type { AskModel } from './model/model.ts';
import { createFindKey } from './providers/find-key.ts';
import { createProviderModel } from './providers/provider.ts';
import { calledProviders } from './providers/providers.ts';
import { createRecovery } from './recovery.ts';
import { createScriptedModel } from './scripted.ts';

/** The lists of the providers' models. `keys`, `identities`: as for `createModels`. */
export function createCatalog(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'prices'>,
  keys: ProviderKeys = {},
  identities?: Identities,
): ModelCatalog {
  return createModelCatalog(platform, createFindKey(platform, keys, identities));
}

/**
 * `keys`: the operator's keys, used for agents whose environment has none. `limits`: of environments; without them there are none.
 * `identities`: of the machine, at clouds; without them there are none.
 */
export function createModels(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'files' | 'memory' | 'wake' | 'log'>,
  keys: ProviderKeys = {},
  limits?: Pick<ModelLimits, 'within'>,
  identities?: Identities,
): AskModel {
  const ifAvailable = createAvailability(platform.clock, createRecovery(platform));
  const withinLimits = limits?.within ?? ((ask: AskModel) => ask);
  const findKey = createFindKey(platform, keys, identities);
  const models = new Map<ProviderName, AskModel>([
    ['scripted', withinLimits(createScriptedModel(platform.clock))],
    ...Object.values(calledProviders).map((provider) => {
      const model = createProviderModel(provider, platform, findKey);
      // A call that is skipped during an outage takes nothing of a limit.
      return [provider.name, ifAvailable(withinLimits(model))] as const;
    }),
  ]);
  return (call, signal) => {
    const ask = models.get(call.config.provider);
    if (!ask) throw new TypeError('A step of a worker is run by its own program, not asked for');
    return ask(call, signal);
  };
}
