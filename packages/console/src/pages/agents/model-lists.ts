// The models that the providers offer: the lists are requested with the keys of an environment, when the user opens the choice.
import type { ModelList } from '@signalbox/client';
import { calledProviders, ownProvider, ownProviders, type ProviderName, providerFacts } from '@signalbox/contract';
import { useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import { useEnvironment } from '../../data/environment.ts';
import { preferredEnvironment, useEnvironmentNames } from '../../data/environment-names.ts';
import { useOrganization } from '../../data/organization.tsx';

export type OfferedModel = ModelList['models'][number];

export interface ModelGroup {
  provider: ProviderName;
  label: string;
  /** Undefined while it is loading. */
  list: ModelList | undefined;
}

/** The environment whose secrets are used: that of the page, or the first. */
export function useSecretsEnvironment(): string | undefined {
  const chosen = useEnvironment();
  const names = useEnvironmentNames();
  return names && (preferredEnvironment(names, chosen) || undefined);
}

const isCalled = (name: unknown): name is Exclude<ProviderName, 'worker' | 'scripted'> =>
  name !== 'scripted' && calledProviders.some((one) => one === name);

/**
 * The provider of `model` first, at its own address and with its own key, then the others at theirs. `runsIn`: the environment whose
 * keys the model will use, if the page knows.
 */
export function useModelLists(model: Record<string, unknown>, runsIn: string | undefined) {
  const { organizationId, client, may } = useOrganization();
  const usual = useSecretsEnvironment();
  const environment = runsIn ?? usual;
  const [isAsked, setAsked] = useState(false);
  const text = (field: string) => (typeof model[field] === 'string' && model[field] !== '' ? model[field] : undefined);
  const [baseUrl, apiKeySecret] = [text('baseUrl'), text('apiKeySecret')];
  const isOwn = isCalled(model.provider) && (ownProvider(model.provider) !== undefined || baseUrl !== undefined);
  const requests = [
    ...(isOwn && isCalled(model.provider)
      ? [{ provider: model.provider, ...(baseUrl && { baseUrl }), ...(apiKeySecret && { apiKeySecret }) }]
      : []),
    ...ownProviders.flatMap(({ name }) => (isCalled(name) && name !== model.provider ? [{ provider: name }] : [])),
  ];
  const lists = useQueries({
    queries: requests.map((request) => ({
      queryKey: [organizationId, 'models', environment, request],
      queryFn: () => client.agents.models(environment!, request),
      enabled: isAsked && environment !== undefined && may('write'),
      // The service keeps a list as long.
      staleTime: 300_000,
    })),
  });
  const groups = requests.map(
    ({ provider }, index): ModelGroup => ({ provider, label: providerFacts[provider].label, list: lists[index]?.data }),
  );
  return {
    groups,
    /** The list of the provider of `model`. */
    own: isOwn ? groups[0]?.list : undefined,
    environment,
    isLoading: lists.some(({ isLoading }) => isLoading),
    ask: () => setAsked(true),
  };
}
