// The models that an Agent can name, one for each provider of the contract.
import type { Model } from '@signalbox/contract';
import type { Platform } from '../../platform.ts';
import type { AskModel } from './model.ts';
import { createOpenAiCompatibleModel } from './openai-compatible.ts';
import { createScriptedModel } from './scripted.ts';

export function createModels(platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock'>): AskModel {
  const models: Record<Model['provider'], AskModel> = {
    scripted: createScriptedModel(platform.clock),
    'openai-compatible': createOpenAiCompatibleModel(platform),
  };
  return (call, signal) => models[call.config.provider](call, signal);
}
