// One environment: what runs in it, what it is connected to, how often it calls models, and its secrets.
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { capped } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Time } from '../../ui/time.tsx';
import { KeyCount, useCounts, useSubscription, WebhookStatus } from './counts.tsx';
import { Delete, keptText, Retention } from './dialogs.tsx';
import { ModelLimits } from './model-limits.tsx';
import { Secrets } from './secrets.tsx';
import './environments.css';

// What waits for a limit changes without an event.
const EVERY_MS = 5_000;

export function EnvironmentPage() {
  const { name } = useParams({ from: '/$organizationId/environments/$name' });
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const environments = useApiQuery(
    ['environments', 'one', name],
    async (client) => {
      for await (const environment of client.environments.list({ limit: 100 })) {
        if (environment.name === name) return environment;
      }
      return null;
    },
    { everyMs: EVERY_MS },
  );
  const environment = environments.data;
  const [dialog, setDialog] = useState<'keep' | 'delete'>();
  const close = () => setDialog(undefined);
  return (
    <Page
      title={name}
      actions={
        environment &&
        may('write') && (
          <>
            {may('admin') && <Button onClick={() => setDialog('keep')}>Change retention</Button>}
            <Menu
              label="Other actions"
              items={[{ label: 'Delete', danger: true, onSelect: () => setDialog('delete') }]}
            />
          </>
        )
      }
    >
      <Await query={environments}>
        {(found) =>
          found === null ? (
            <EmptyState
              title="No such environment"
              action={
                <Link to="/$organizationId/environments" params={{ organizationId }}>
                  All environments
                </Link>
              }
            >
              The environment may have been deleted.
            </EmptyState>
          ) : (
            <>
              <Facts name={name} kept={keptText(found.keepSessionsDays)} createdAt={found.createdAt} />
              <ModelLimits environment={found} />
              {may('admin') && <Secrets environment={name} />}
            </>
          )
        }
      </Await>
      {dialog === 'keep' && environment && <Retention environment={environment} onClose={close} />}
      {dialog === 'delete' && (
        <Delete
          name={name}
          onClose={close}
          onDeleted={() => void navigate({ to: '/$organizationId/environments', params: { organizationId } })}
        />
      )}
    </Page>
  );
}

const statuses = ['running', 'waiting', 'idle', 'failed'] as const;
const labels = { running: 'Running', waiting: 'Waiting', idle: 'Idle', failed: 'Failed in 24 hours' } as const;

function Facts({ name, kept, createdAt }: { name: string; kept: string; createdAt: string }) {
  const { organizationId, may } = useOrganization();
  const counts = useCounts(name);
  return (
    <div className="card environment-facts">
      <dl>
        {statuses.map((status) => (
          <Fact key={status} name={labels[status]}>
            <Link
              to="/$organizationId/sessions"
              params={{ organizationId }}
              search={{ status, environment: name, ...(status === 'failed' && { range: '24h' as const }) }}
              className="figure number"
            >
              {counts.data ? capped(counts.data[status]) : '–'}
            </Link>
          </Fact>
        ))}
        <Fact name="Webhook">
          <Webhook environment={name} />
        </Fact>
        {may('admin') && (
          <Fact name="API keys">
            <Link to="/$organizationId/keys" params={{ organizationId }}>
              <KeyCount environment={name} />
            </Link>
          </Fact>
        )}
        <Fact name="Keep ended sessions">{kept}</Fact>
        <Fact name="Created">
          <Time at={createdAt} />
        </Fact>
      </dl>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Webhook({ environment }: { environment: string }) {
  const { organizationId, may } = useOrganization();
  const subscription = useSubscription(environment);
  if (subscription === null) {
    return may('write') ? (
      <Link to="/$organizationId/webhooks" params={{ organizationId }}>
        Add a webhook
      </Link>
    ) : (
      <span className="quiet">none</span>
    );
  }
  return (
    <Link to="/$organizationId/webhooks/$environment" params={{ organizationId, environment }}>
      <WebhookStatus environment={environment} />
    </Link>
  );
}
