// OpenAI, by its Responses interface.
import { NO_KEY, type Provider } from './provider.ts';

export const openai: Provider = {
  name: 'openai',
  keyHeader: ['authorization', 'Bearer '],
  takesSchema: true,
  // Not stored there, so reasoning goes to and fro under OpenAI's seal; nobody is shown a summary of it, which some accounts may
  // not ask for. Strict schemas must require every property: people's need not.
  options: () => ({ openai: { store: false, reasoningSummary: null, strictJsonSchema: false } }),
  async model(name, server) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    return createOpenAI({ ...server, apiKey: NO_KEY }).responses(name);
  },
};
