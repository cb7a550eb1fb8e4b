// OpenAI's models at Azure, through the Responses API of its version 1: the same as OpenAI's, with another header for the key.
import { modelFacts } from '@signalbox/contract';
import { openai } from './openai.ts';
import type { Provider } from './provider.ts';

export const azure: Provider = {
  ...openai,
  name: 'azure',
  // As a bearer token it would be taken for one of Entra.
  keyHeader: ['api-key', ''],
  options(isOwn, call) {
    const { model, settings } = call.config;
    // A deployment can have any name. The package then does not know that its model reasons, and would leave the setting out.
    const isUnknown = modelFacts({ provider: 'azure', model: model ?? '' }).contextTokens === null;
    const forceReasoning = isUnknown && settings?.reasoning !== undefined;
    return { openai: { ...openai.options?.(isOwn, call).openai, ...(forceReasoning && { forceReasoning }) } };
  },
};
