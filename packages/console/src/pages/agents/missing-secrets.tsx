// Which of the secrets that the definition needs an environment does not have.
import type { Signalbox } from '@signalbox/client';
import { type NeededSecret, neededSecrets } from '@signalbox/contract';
import { Link } from '@tanstack/react-router';
import { Fragment, useDeferredValue, useMemo } from 'react';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Notice } from '../../ui/notice.tsx';
import { useDraft } from './draft.tsx';
import { modelOf } from './model.ts';

// More are shown on their own pages.
const MOST_ENVIRONMENTS = 10;

/** Only admins see which secrets are set. */
export function MissingSecrets() {
  const { organizationId, may } = useOrganization();
  // Deferred, so that it does not delay typing.
  const definition = useDeferredValue(useDraft().value);
  const needed = useMemo(
    () => neededSecrets({ model: modelOf(definition.model), tools: definition.tools }),
    [definition],
  );
  const environments = useEnvironmentNames()?.slice(0, MOST_ENVIRONMENTS);
  const { data: missing = [] } = useApiQuery(
    ['secrets', 'missing', environments, needed],
    (client) => findMissing(client, environments!, needed),
    { enabled: may('admin') && needed.length > 0 && environments !== undefined },
  );
  if (missing.length === 0) return null;
  return (
    <Notice kind="warn" title={missing.length === 1 ? 'A secret is missing' : 'Secrets are missing'}>
      <ul className="missing-secrets">
        {missing.map(({ name, environments: lacking }) => (
          <li key={name}>
            <code>{name}</code> in{' '}
            {lacking.map((environment, index) => (
              <Fragment key={environment}>
                {index > 0 && ', '}
                <Link to="/$organizationId/environments/$name" params={{ organizationId, name: environment }}>
                  {environment}
                </Link>
              </Fragment>
            ))}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

async function findMissing(client: Signalbox, environments: readonly string[], needed: readonly NeededSecret[]) {
  const lacking = new Map<string, string[]>();
  for (const environment of environments) {
    const known = new Set<string>();
    for await (const { name } of client.environments.secrets.list(environment, { limit: 100 })) known.add(name);
    for (const { name, provider, cloud } of needed) {
      const model = cloud ?? (provider === undefined ? undefined : { provider });
      if (known.has(name) || (model && (await hasOtherKey(client, environment, model as Listed)))) continue;
      lacking.set(name, [...(lacking.get(name) ?? []), environment]);
    }
  }
  return [...lacking].map(([name, all]) => ({ name, environments: all }));
}

type Listed = Parameters<Signalbox['agents']['models']>[1];

/** A key of the operator, or an identity at a cloud. */
async function hasOtherKey(client: Signalbox, environment: string, model: Listed): Promise<boolean> {
  const { problem } = await client.agents.models(environment, model);
  return problem?.code !== 'model_key_missing';
}
