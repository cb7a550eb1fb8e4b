// Keys of models from the identity that the machine has at a cloud, for the environments that the operator lists. The files that request
// tokens are loaded with the first call that needs them.
//
// What fails is in the operator's log. Users learn only that the environment has no key and whether the operator allows it an identity:
// which role, account or tenant that is, and why it can't be had, is none of their business.
import type { ProviderName } from '@signalbox/contract';
import { type EgressOptions, OPERATOR, type OrganizationEgress } from '../../egress/egress.ts';
import { unknownEnvironments } from '../../environments/with-identity.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Platform } from '../../platform.ts';
import type { CloudIdentities, IdentityVariables } from '../../vault/cloud-identities.ts';
import { type AccessToken, createAccessTokens } from '../keys/access-tokens.ts';
import { ModelFailure } from '../model/model.ts';
import type { ProviderKey } from '../model/provider-key.ts';
import { type CloudIdentity, type IdentitySource, unusable } from './identity.ts';
import { type MachineCloud, readMachineCloud } from './machine.ts';
import { createMetadata, type Metadata } from './metadata.ts';

const clouds: Partial<Record<ProviderName, () => Promise<CloudIdentity>>> = {
  azure: async () => (await import('./azure.ts')).azureIdentity,
  bedrock: async () => (await import('./aws.ts')).awsIdentity,
  vertex: async () => (await import('./google.ts')).googleIdentity,
};

/** The clouds with identities, by the names of their providers. */
export const identityProviders = Object.keys(clouds) as ProviderName[];

const LABEL = 'the service’s own identity';

export interface Identities {
  /**
   * The key for a call of one of the provider's own servers, in place of the missing secret `name`. Throws `model_key_missing`, also if
   * the operator does not allow it, or `model_unavailable` if it may be had later. Undefined: the provider has no identities.
   */
  keyFor(provider: ProviderName, call: IdentityCall): Promise<ProviderKey> | undefined;
}

interface IdentityCall {
  readonly organizationId: string;
  readonly environment: string;
  readonly name: string;
  readonly baseUrl: URL;
  /** That there is no secret, as a sentence without its end. */
  readonly missing: string;
}

/** What an identity is requested with. */
interface IdentityMeans {
  readonly egress: OrganizationEgress;
  readonly metadata: Metadata;
  readonly clock: Clock;
  /** Default: what its firmware says. */
  readonly machine?: () => Promise<MachineCloud | undefined>;
}

/** Warns of listed environments that do not exist: they may be misspelt. `ways`: of tests. `stops`: closes connections at the end. */
export async function startIdentities(
  listed: CloudIdentities,
  { db, egress, clock, log }: Pick<Platform, 'db' | 'egress' | 'clock' | 'log'>,
  { ways, stops }: { ways: Pick<EgressOptions, 'lookup' | 'open'> | undefined; stops: (() => Promise<unknown>)[] },
): Promise<Identities> {
  for (const { entry } of await unknownEnvironments((text) => db.query(text), listed.environments)) {
    log.warn({ entry }, 'SIGNALBOX_CLOUD_IDENTITIES lists an environment that does not exist');
  }
  const metadata = createMetadata(listed.variables, { clock, ...ways });
  stops.push(() => metadata.close());
  return createIdentities(listed, { egress: egress.of(OPERATOR), metadata, clock, log });
}

export function createIdentities(
  { environments, variables }: CloudIdentities,
  { log, ...means }: IdentityMeans & { log: Log },
): Identities {
  const { clock } = means;
  const tokens = createAccessTokens(clock);
  const allowed = new Set(environments.map(({ organizationId, environment }) => `${organizationId}/${environment}`));

  async function keyOf(
    load: () => Promise<CloudIdentity>,
    provider: ProviderName,
    { name, baseUrl, missing }: IdentityCall,
  ): Promise<ProviderKey> {
    const cloud = await load();
    const audience = cloud.audienceOf(baseUrl, variables);
    const id = JSON.stringify([provider, audience]);
    // Shared with calls of other environments, so what it throws is of none of them.
    const request = () =>
      tokenFrom(cloud, variables, means, audience).catch((error: unknown) => {
        const problem = error instanceof ModelFailure ? error.message : 'an unexpected error';
        log.warn({ provider, problem }, 'the identity of the service could not be had');
        throw error;
      });
    const { value } = await tokens.get(id, request).catch((error: unknown) => {
      const retryable = error instanceof ModelFailure && error.retryable;
      const why = `${missing}, and ${LABEL}, which the operator allows it to use instead, could not be had`;
      throw new ModelFailure(retryable ? 'model_unavailable' : 'model_key_missing', why, { retryable });
    });
    const key = await cloud.keyOf({ name, value, label: LABEL }, { baseUrl, clock });
    return { ...key, expire: () => tokens.expire(id, value) };
  }

  return {
    keyFor(provider, call) {
      const load = clouds[provider];
      if (!load) return undefined;
      if (allowed.has(`${call.organizationId}/${call.environment}`)) return keyOf(load, provider, call);
      const why = `${call.missing}, and the operator does not allow it to use ${LABEL} instead`;
      return Promise.reject(new ModelFailure('model_key_missing', why, { retryable: false }));
    },
  };
}

async function tokenFrom(
  cloud: CloudIdentity,
  variables: IdentityVariables,
  means: IdentityMeans,
  audience: string,
): Promise<AccessToken> {
  const source = await sourceOf(cloud, variables, means);
  if (!source) throw unusable(cloud.none);
  return await source.request({ ...means, variables, now: means.clock.now().getTime() }, audience);
}

async function sourceOf(
  { sources }: CloudIdentity,
  variables: IdentityVariables,
  { machine = readMachineCloud }: IdentityMeans,
): Promise<IdentitySource | undefined> {
  const cloud = await machine();
  return sources.find((one) => one.isHere(variables, cloud));
}

/** What gives the identity at the provider here, for the operator, and whether its settings say so. Undefined: nothing. */
export async function identityMark(
  provider: ProviderName,
  { variables }: CloudIdentities,
  means: IdentityMeans,
): Promise<{ mark: string; isSet: boolean } | undefined> {
  const cloud = await clouds[provider]?.();
  const source = cloud && (await sourceOf(cloud, variables, means));
  return source && { mark: source.mark, isSet: source.isHere(variables, undefined) };
}

/** Whether a token of the identity at the provider can be had, for the operator. Throws `ModelFailure`, which says why not. */
export async function checkIdentity(
  provider: ProviderName,
  { variables }: CloudIdentities,
  means: IdentityMeans,
): Promise<void> {
  const cloud = await clouds[provider]?.();
  if (!cloud) throw new TypeError(`${provider} has no identities`);
  await tokenFrom(cloud, variables, means, cloud.audienceOf(new URL('https://unknown.invalid'), variables));
}
