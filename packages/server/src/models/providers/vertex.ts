// Gemini at Google Cloud's Vertex AI: Google's generateContent API, with an API key or a service account.
import { createHash } from 'node:crypto';
import { cloudUrlForm, isServerOf } from '@signalbox/contract';
import { isAllowedHost } from '../../environments/secrets.ts';
import { tokenIn } from '../keys/access-tokens.ts';
import { assertionOf, isGoogle, parseServiceAccount } from '../keys/service-account.ts';
import { requestToken } from '../keys/token-request.ts';
import { ModelFailure } from '../model/model.ts';
import { NO_KEY, type ProviderKey } from '../model/provider-key.ts';
import { checkModelName, google } from './google.ts';
import type { KeyContext, Provider, SecretKey } from './provider.ts';

export const vertex: Provider = {
  ...google,
  name: 'vertex',
  keyFrom: (secret, context) => (secret.value.startsWith('{') ? tokenKey(secret, context) : undefined),
  async model(name, server) {
    checkModelName(name);
    const { createGoogle } = await import('@ai-sdk/google');
    // By this name the package leaves out what only the Gemini API knows, such as the ids of calls.
    return createGoogle({ ...server, apiKey: NO_KEY, name: 'google.vertex.chat' }).chat(name);
  },
};

/** A token of the service account whose key the secret is. */
async function tokenKey(secret: SecretKey, context: KeyContext): Promise<ProviderKey> {
  const { name, value, label, allowedHosts } = secret;
  const { baseUrl, egress, clock, tokens, organizationId } = context;
  if (isServerOf('vertex', baseUrl) && !baseUrl.pathname.includes('/projects/')) {
    const why = `${label} is a service account’s key, which needs a base URL with its project: ${cloudUrlForm('vertex')}`;
    throw new ModelFailure('model_not_allowed', `The agent’s model can’t be called: ${why}`, { retryable: false });
  }
  const account = parseServiceAccount(value, label);
  const { tokenUrl } = account;
  if (!isGoogle(tokenUrl) && !isAllowedHost(allowedHosts, tokenUrl)) {
    const why = `The secret ${name} has a token_uri that is neither Google’s nor at a host that the secret allows`;
    throw new ModelFailure('model_not_allowed', why, { retryable: false });
  }
  const id = JSON.stringify([organizationId, createHash('sha256').update(value).digest('base64')]);
  const token = await tokens.get(id, async () => {
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' };
    const now = clock.now().getTime();
    const request = { method: 'POST', url: tokenUrl.href, headers, body: assertionOf(account, now) };
    return tokenIn(await requestToken(egress, { name: 'Google', label }, request), 'Google', now);
  });
  return {
    name,
    value: token.value,
    label,
    headers: async () => ({ authorization: `Bearer ${token.value}` }),
    expire: () => tokens.expire(id, token.value),
  };
}
