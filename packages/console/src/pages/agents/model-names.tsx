// The models that the provider offers, below the field for the model's name. Any other name can be typed as well.
import type { ModelList } from '@signalbox/client';
import { calledProviders } from '@signalbox/contract';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useEnvironmentNames } from '../../environment-names.ts';
import { useEnvironment } from '../../frame/environment.tsx';
import { useApiQuery, useOrganization } from '../../organization.tsx';

type OfferedModel = ModelList['models'][number];

/** The environment whose secrets are used: that of the page, or the first. */
export function useSecretsEnvironment(): string | undefined {
  const chosen = useEnvironment();
  const names = useEnvironmentNames();
  return chosen ?? (names?.includes('staging') ? 'staging' : names?.[0]);
}

/** The list is requested when the field gets the focus: `ask`. */
export function useModelList(model: Record<string, unknown>) {
  const { may } = useOrganization();
  const environment = useSecretsEnvironment();
  const [isAsked, setAsked] = useState(false);
  const provider = calledProviders.find((name) => name === model.provider && name !== 'scripted');
  const text = (field: string) => (typeof model[field] === 'string' && model[field] !== '' ? model[field] : undefined);
  const [baseUrl, apiKeySecret] = [text('baseUrl'), text('apiKeySecret')];
  const isPossible = provider !== undefined && (provider !== 'openai-compatible' || baseUrl !== undefined);
  const { data } = useApiQuery(
    ['models', environment, provider, baseUrl, apiKeySecret],
    (client) =>
      client.agents.models(environment!, {
        provider: provider!,
        ...(baseUrl !== undefined && { baseUrl }),
        ...(apiKeySecret !== undefined && { apiKeySecret }),
      }),
    { enabled: isAsked && isPossible && environment !== undefined && may('write') },
  );
  return { list: isPossible ? data : undefined, environment, ask: () => setAsked(true) };
}

export function ModelOptions({ id, models }: { id: string; models: readonly OfferedModel[] }) {
  return (
    <datalist id={id}>
      {models.map((one) => (
        <option
          key={one.model}
          value={one.model}
          label={[one.displayName, aboutModel(one)].filter(Boolean).join(' · ')}
        />
      ))}
    </datalist>
  );
}

/** What is known about the chosen model, or why there is no list. */
export function ModelNote({ list, name, environment }: { list: ModelList; name: string; environment: string }) {
  const { organizationId } = useOrganization();
  if (list.problem) {
    return (
      <>
        {list.problem.message}.{' '}
        {list.problem.code.startsWith('model_key') && (
          <Link to="/$organizationId/environments" params={{ organizationId }} search={{ environment }}>
            Set the secret
          </Link>
        )}
      </>
    );
  }
  const chosen = list.models.find(({ model }) => model === name);
  if (chosen) return <>{aboutModel(chosen) || 'The provider offers this model.'}</>;
  const count = list.models.length.toLocaleString('en');
  return (
    <>
      {name === '' ? '' : 'Not in the provider’s list. '}
      Type to choose from {count} models that the key of {environment} may use.
    </>
  );
}

function aboutModel({ contextTokens, input, price }: OfferedModel): string {
  return [
    contextTokens !== null && `${contextTokens.toLocaleString('en')} tokens`,
    input !== null && input.length > 0 && `takes ${input.join(', ')}`,
    price && `$${price.inputUsd} in, $${price.outputUsd} out per million`,
  ]
    .filter(Boolean)
    .join(' · ');
}
