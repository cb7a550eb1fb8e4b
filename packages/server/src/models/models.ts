// The models that an agent can use, one implementation for each provider of the contract.
import type { Model } from '@signalbox/contract';
import type { Platform } from '../platform.ts';
import type { ProviderKeys } from '../vault/provider-keys.ts';
import { createAvailability } from './availability.ts';
import { createModelCatalog, type ModelCatalog } from './catalog.ts';
import type { AskModel } from './model/model.ts';
import { anthropic } from './providers/anthropic.ts';
import { google } from './providers/google.ts';
import { openai } from './providers/openai.ts';
import { openaiCompatible } from './providers/openai-compatible.ts';
import { createProviderModel, type Provider } from './providers/provider.ts';
import { createRecovery } from './recovery.ts';
import { createScriptedModel } from './scripted.ts';

/** The lists of the providers' models. `keys`: as for `createModels`. */
export function createCatalog(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'prices'>,
  keys: ProviderKeys = {},
): ModelCatalog {
  return createModelCatalog(platform, { openai, anthropic, google, 'openai-compatible': openaiCompatible }, keys);
}

/** `keys`: the operator's keys, used for agents whose environment has none. */
export function createModels(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'files' | 'memory' | 'wake' | 'log'>,
  keys: ProviderKeys = {},
): AskModel {
  const ifAvailable = createAvailability(platform.clock, createRecovery(platform));
  const model = (provider: Provider) => ifAvailable(createProviderModel(provider, platform, keys));
  const models: Record<Model['provider'], AskModel> = {
    scripted: createScriptedModel(platform.clock),
    openai: model(openai),
    anthropic: model(anthropic),
    google: model(google),
    'openai-compatible': model(openaiCompatible),
    worker: () => {
      throw new TypeError('A step of a worker is run by its own program, not asked for');
    },
  };
  return (call, signal) => models[call.config.provider](call, signal);
}
