// Anthropic, by its Messages interface.
import { NO_KEY, type Provider } from './provider.ts';

/** Anthropic says that it may add to these, and that clients are to pass over what they don't know. */
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
  options: (isOwn) => ({
    anthropic: {
      // Calls are kept until they are whole: better checked by Anthropic than sooner in pieces.
      toolStreaming: false,
      // Every step sends the transcript again, and Anthropic caches only where it is asked to. Others who speak its format may
      // not know the word.
      ...(isOwn && { cacheControl: { type: 'ephemeral' } }),
    },
  }),
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
