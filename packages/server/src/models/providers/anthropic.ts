// Anthropic, through its Messages API.
import { NO_KEY } from '../model/provider-key.ts';
import { createAnthropicReader } from './anthropic-events.ts';
import type { Provider } from './provider.ts';

export const anthropic: Provider = {
  name: 'anthropic',
  keyHeader: ['x-api-key', ''],
  takesSchema: true,
  takesToolFiles: true,
  reader: createAnthropicReader,
  // Calls are only used once they are complete: Anthropic validates them as a whole, which is better than getting pieces sooner.
  options: () => ({ anthropic: { toolStreaming: false } }),
  // Every step sends the transcript again, and Anthropic caches only on request. Other servers that use its format may not know the
  // field.
  cachePoint: () => ({ anthropic: { cacheControl: { type: 'ephemeral' } } }),
  search: {
    tool: (search) => ({ id: 'anthropic.web_search_20250305', args: search }),
    // Its results are always cited, which a schema has no place for.
    takesSchema: false,
  },
  async model(name, server) {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return createAnthropic({ ...server, apiKey: NO_KEY }).messages(name);
  },
};
