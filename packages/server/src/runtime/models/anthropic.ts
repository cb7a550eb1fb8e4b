// Anthropic, through its Messages API.
import { NO_KEY, type Provider } from './provider.ts';

/** Anthropic may add event types, and asks clients to ignore those that they don't know. */
const EVENTS: ReadonlySet<unknown> = new Set([
  'message_start',
  'message_delta',
  'message_stop',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'ping',
  'error',
]);

export const anthropic: Provider = {
  name: 'anthropic',
  keyHeader: ['x-api-key', ''],
  takesSchema: true,
  takesToolFiles: true,
  // Calls are only used once they are complete: Anthropic validates them as a whole, which is better than getting pieces sooner.
  options: () => ({ anthropic: { toolStreaming: false } }),
  // Every step sends the transcript again, and Anthropic caches only on request. Other servers that use its format may not know the
  // field.
  cachePoint: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  passesOver: (event) =>
    typeof event === 'object' &&
    event !== null &&
    'type' in event &&
    typeof event.type === 'string' &&
    !EVENTS.has(event.type),
  async model(name, server) {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return createAnthropic({ ...server, apiKey: NO_KEY }).messages(name);
  },
};
