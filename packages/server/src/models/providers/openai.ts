// OpenAI, through its Responses API.

import { NO_KEY } from '../model/provider-key.ts';
import type { Provider } from './provider.ts';
import { createResponsesReader } from './responses-events.ts';

export const openai: Provider = {
  name: 'openai',
  keyHeader: ['authorization', 'Bearer '],
  takesSchema: true,
  takesToolFiles: true,
  reader: createResponsesReader,
  // Responses are not stored at OpenAI, so each request carries the encrypted reasoning. A summary of the reasoning is
  // requested only if it is shown: some accounts may not request it. Strict schemas must require every property; the schemas of our users need not.
  // Requests with the same key go to the same machine, whose cache then has the session's previous request.
  options: (isOwn, { sessionId, shows, webSearch }) => ({
    openai: {
      store: false,
      reasoningSummary: shows?.reasoning ? 'auto' : null,
      strictJsonSchema: false,
      // Its own tools only: functions do not count.
      ...(webSearch?.maxUses !== undefined && { maxToolCalls: webSearch.maxUses }),
      ...(isOwn && { promptCacheKey: sessionId }),
    },
  }),
  asksForReasoning: true,
  search: {
    tool: ({ allowedDomains }) => ({
      id: 'openai.web_search',
      args: allowedDomains ? { filters: { allowedDomains } } : {},
    }),
    takesSchema: true,
  },
  async model(name, server) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    return createOpenAI({ ...server, apiKey: NO_KEY }).responses(name);
  },
};
