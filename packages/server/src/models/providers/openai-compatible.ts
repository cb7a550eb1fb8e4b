// Any server that speaks OpenAI's chat completions: OpenAI itself, Ollama, vLLM, llama.cpp, gateways.

import { NO_KEY } from '../model/provider-key.ts';
import { chatDataExtractor } from '../prompt/chat-data.ts';
import { createChatReader } from './chat-events.ts';
import type { Provider } from './provider.ts';

export const openaiCompatible: Provider = {
  name: 'openai-compatible',
  keyHeader: ['authorization', 'Bearer '],
  // Support for response formats varies: some servers refuse it, and some then call no tools.
  takesSchema: false,
  takesToolFiles: false,
  reader: createChatReader,
  thinksInText: true,
  async model(name, server) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    return createOpenAICompatible({
      ...server,
      name: 'provider',
      apiKey: NO_KEY,
      includeUsage: true,
      metadataExtractor: chatDataExtractor,
    }).chatModel(name);
  },
};
