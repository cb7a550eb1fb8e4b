// Google's Gemini, through its generateContent API.

import { ModelFailure } from '../model/model.ts';
import { NO_KEY } from '../model/provider-key.ts';
import { createGoogleReader } from './google-events.ts';
import type { Provider } from './provider.ts';

/** It becomes part of the request's path: `gemini-3.8-flash`, `tunedModels/mine`. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/;

export const google: Provider = {
  name: 'google',
  keyHeader: ['x-goog-api-key', ''],
  takesSchema: true,
  takesToolFiles: true,
  reader: createGoogleReader,
  options: (_isOwn, { shows }) => ({ google: shows?.reasoning ? { thinkingConfig: { includeThoughts: true } } : {} }),
  asksForReasoning: true,
  // Gemini 2 refuses a schema beside a tool.
  search: { tool: () => ({ id: 'google.google_search', args: {} }), takesSchema: false },
  // Gemini sometimes ends with STOP and without parts.
  repeatsEmpty: true,
  async model(name, server) {
    checkModelName(name);
    const { createGoogle } = await import('@ai-sdk/google');
    return createGoogle({ ...server, apiKey: NO_KEY }).chat(name);
  },
};

/** Throws `model_rejected`. */
export function checkModelName(name: string): void {
  if (MODEL_NAME.test(name)) return;
  throw new ModelFailure('model_rejected', 'The model’s name is not a Google model', { retryable: false });
}
