// The key that a provider is asked with (api.md section 3): the Environment's secret, which goes where its own list allows;
// else the operator's own key, where the operator lends it, which goes to the provider's own server and nowhere else.
import { ownProvider } from '@signalbox/contract';
import { isAllowedHost, openSecrets } from '../../environments/secrets.ts';
import type { Platform } from '../../platform.ts';
import { isHeaderValue, type ProviderKeys } from '../../vault/provider-keys.ts';
import { type ModelCall, ModelFailure } from './model.ts';
import { isOwnServer, type Provider } from './provider.ts';

export interface ProviderKey {
  readonly name: string;
  readonly value: string;
}

/**
 * Undefined where the server is not the provider's own and nobody named a key: it may need none. Throws `model_not_allowed`
 * where there is none of that name, or none for this host.
 */
export async function keyFor(
  platform: Pick<Platform, 'db' | 'vault'>,
  provider: Provider,
  { config, organizationId, environment }: ModelCall,
  baseUrl: URL,
  keys: ProviderKeys,
): Promise<ProviderKey | undefined> {
  const ownName = ownProvider(provider.name)?.keyName;
  const name = config.apiKeySecret ?? ownName;
  if (name === undefined) return undefined;
  const secret = await openSecrets(platform, organizationId, environment, [name]).then(
    (secrets) => secrets.get(name),
    () => {
      throw new ModelFailure('model_unavailable', `The secret ${name} could not be read`, { retryable: true });
    },
  );
  if (secret) {
    if (!isAllowedHost(secret.allowedHosts, baseUrl))
      throw refused(`The secret ${name} is not allowed to be sent to the model’s host`);
    const key = secret.value.trim();
    if (!isHeaderValue(key)) throw refused(`The secret ${name} contains characters that are not allowed in a header`);
    return { name, value: key };
  }
  const isOwn = isOwnServer(provider, baseUrl);
  // By its own name alone: an Agent can't have another variable of the server sent.
  const lent = isOwn && ownName !== undefined && name === ownName ? keys[ownName] : undefined;
  if (lent === undefined && (isOwn || config.apiKeySecret !== undefined)) {
    throw refused(`The environment has no secret ${name}`);
  }
  return lent === undefined ? undefined : { name, value: lent };
}

function refused(why: string): ModelFailure {
  return new ModelFailure('model_not_allowed', why, { retryable: false });
}
