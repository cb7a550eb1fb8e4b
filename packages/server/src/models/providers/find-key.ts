// The API key for a request to a provider. A secret of the environment comes first; it is sent only to hosts on the secret's own
// list. Otherwise the operator's key is used, if the operator provides one, or at a cloud the machine's own identity, if the operator
// allows it to this environment; both are sent only to the provider's own servers.
import { isServerOf, ownProvider, usualKeyName } from '@signalbox/contract';
import { isAllowedHost, openSecrets } from '../../environments/secrets.ts';
import type { Platform } from '../../platform.ts';
import { isHeaderValue, type ProviderKeys } from '../../vault/provider-keys.ts';
import type { Identities } from '../identities/identities.ts';
import { createAccessTokens } from '../keys/access-tokens.ts';
import { type ModelCall, ModelFailure } from '../model/model.ts';
import type { ProviderKey } from '../model/provider-key.ts';
import type { Provider } from './provider.ts';

/**
 * Undefined if the server is not the provider's own and no key was named: it may need none. Throws `model_key_missing` if the
 * secret does not exist, and `model_not_allowed` if it may not be sent to this host.
 */
export type FindKey = (
  provider: Provider,
  call: Pick<ModelCall, 'config' | 'organizationId' | 'environment'>,
  baseUrl: URL,
) => Promise<ProviderKey | undefined>;

/** `keys`: the operator's, by the names of their variables. `identities`: of the machine; without them there are none. */
export function createFindKey(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock'>,
  keys: ProviderKeys,
  identities?: Identities,
): FindKey {
  const { clock } = platform;
  const tokens = createAccessTokens(clock);

  return async function findKey(provider, { config, organizationId, environment }, baseUrl) {
    const name = config.apiKeySecret ?? usualKeyName(provider.name);
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
      const key = {
        name,
        value: secret.value.trim(),
        label: `the secret ${name} of the environment ${environment}`,
        allowedHosts: secret.allowedHosts,
      };
      const egress = platform.egress.of(organizationId);
      const made = provider.keyFrom?.(key, { organizationId, baseUrl, egress, clock, tokens });
      if (made) return await made;
      if (isHeaderValue(key.value)) return key;
      throw refused(`The secret ${name} contains characters that are not allowed in a header`);
    }
    const isOwn = isServerOf(provider.name, baseUrl);
    // The servers of a cloud belong to its customers, so they get no key of the operator.
    const ownName = ownProvider(provider.name)?.keyName;
    // Read under a fixed name: an agent must not be able to choose another environment variable of the service.
    const lent = isOwn && ownName !== undefined && name === ownName ? keys[ownName] : undefined;
    if (lent === undefined && (isOwn || config.apiKeySecret !== undefined)) {
      const message = `The environment ${environment} has no secret ${name}, the key for the agent’s model`;
      // An agent that names another secret means an account of its own.
      if (isOwn && name === usualKeyName(provider.name)) {
        const call = { organizationId, environment, name, baseUrl, missing: message };
        const identity = identities?.keyFor(provider.name, call);
        if (identity) return await identity;
      }
      throw new ModelFailure('model_key_missing', message, { retryable: false });
    }
    return lent === undefined ? undefined : { name, value: lent, label: `the operator’s ${name}` };
  };
}

function refused(why: string): ModelFailure {
  return new ModelFailure('model_not_allowed', why, { retryable: false });
}
