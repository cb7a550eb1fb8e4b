// Gemini at Google Cloud's Vertex AI: Google's generateContent API, with an API key or a service account.
import { createHash } from 'node:crypto';
import { isAllowedHost } from '../../environments/secrets.ts';
import { accountToken, isGoogle, parseServiceAccount, requireProject } from '../keys/service-account.ts';
import { ModelFailure } from '../model/model.ts';
import { bearerKey, NO_KEY, type ProviderKey } from '../model/provider-key.ts';
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
  requireProject(baseUrl, `${label} is a service account’s key`);
  const account = parseServiceAccount(value, label);
  const { tokenUrl } = account;
  if (!isGoogle(tokenUrl) && !isAllowedHost(allowedHosts, tokenUrl)) {
    const why = `The secret ${name} has a token_uri that is neither Google’s nor at a host that the secret allows`;
    throw new ModelFailure('model_not_allowed', why, { retryable: false });
  }
  const id = JSON.stringify([organizationId, createHash('sha256').update(value).digest('base64')]);
  const token = await tokens.get(id, () => accountToken(account, label, { egress, now: clock.now().getTime() }));
  return { ...bearerKey({ name, value: token.value, label }), expire: () => tokens.expire(id, token.value) };
}
