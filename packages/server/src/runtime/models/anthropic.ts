// Anthropic, by its Messages interface.
import { createAnthropic } from '@ai-sdk/anthropic';
import { NO_KEY, type Provider } from './provider.ts';

export const anthropic: Provider = {
  name: 'anthropic',
  own: { baseUrl: 'https://api.anthropic.com/v1', keyName: 'ANTHROPIC_API_KEY' },
  keyHeader: ['x-api-key', ''],
  takesSchema: true,
  // Every step sends the transcript again, and Anthropic caches only where it is asked to. Others who speak its format may not know the word.
  options: (isOwn) => (isOwn ? { anthropic: { cacheControl: { type: 'ephemeral' } } } : {}),
  model: (name, server) => createAnthropic({ ...server, apiKey: NO_KEY }).messages(name),
};
