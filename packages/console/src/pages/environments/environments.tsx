import type { Environment } from '@signalbox/client';
import { Server } from 'lucide-react';
import { useState } from 'react';
import { useList, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Page } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { KeyCount, OpenSessions, WebhookStatus } from './counts.tsx';
import { Create, Delete, keptText, Retention } from './dialogs.tsx';

type OpenDialog =
  | { what: 'create' }
  | { what: 'keep'; environment: Environment }
  | { what: 'delete'; environment: Environment };

export function EnvironmentsPage() {
  const { may, organizationId } = useOrganization();
  const environments = useList(['environments'], (client, page) => client.environments.list(page));
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  const columns: Column<Environment>[] = [
    { id: 'name', label: 'Name', cell: ({ name }) => name },
    {
      id: 'sessions',
      label: 'Open sessions',
      width: '7rem',
      end: true,
      phone: 'aside',
      cell: ({ name }) => (
        <>
          <span>
            <OpenSessions environment={name} />
          </span>
          <span className="only-on-phone quiet"> open</span>
        </>
      ),
    },
    {
      id: 'webhook',
      label: 'Webhook',
      width: '9rem',
      phone: 'under',
      cell: ({ name }) => <WebhookStatus environment={name} />,
    },
    ...(may('admin')
      ? [
          {
            id: 'keys',
            label: 'API keys',
            width: '5.5rem',
            end: true,
            cell: ({ name }: Environment) => <KeyCount environment={name} />,
          },
          {
            id: 'secrets',
            label: 'Secrets',
            width: '5rem',
            end: true,
            cell: ({ secretCount }: Environment) => secretCount,
          },
        ]
      : []),
    {
      id: 'kept',
      label: 'Keep ended sessions',
      width: '11rem',
      from: 'desktop',
      cell: ({ keepSessionsDays }) => keptText(keepSessionsDays),
    },
    {
      id: 'created',
      label: 'Created',
      width: '8rem',
      from: 'desktop',
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ];
  const create = may('write') && (
    <Button look="primary" onClick={() => setDialog({ what: 'create' })}>
      New environment
    </Button>
  );
  return (
    <Page
      title="Environments"
      operation="createEnvironment"
      about="Each environment has its own sessions, secrets and webhook subscription."
      actions={create}
    >
      <Table
        name="environments"
        caption="Environments"
        query={environments}
        columns={columns}
        rowKey={({ environmentId }) => environmentId}
        rowLink={({ name }) => ({
          to: '/$organizationId/environments/$name',
          params: { organizationId, name },
        })}
        {...(may('write') && {
          actions: (environment: Environment) => (
            <Menu
              label={`Actions for ${environment.name}`}
              items={[
                ...(may('admin')
                  ? [{ label: 'Change retention', onSelect: () => setDialog({ what: 'keep', environment }) }]
                  : []),
                { label: 'Delete', danger: true, onSelect: () => setDialog({ what: 'delete', environment }) },
              ]}
            />
          ),
        })}
        empty={
          <EmptyState icon={Server} title="No environments" action={create}>
            Create one to run sessions in it.
          </EmptyState>
        }
      />
      {dialog?.what === 'create' && <Create onClose={close} />}
      {dialog?.what === 'keep' && <Retention environment={dialog.environment} onClose={close} />}
      {dialog?.what === 'delete' && <Delete name={dialog.environment.name} onClose={close} />}
    </Page>
  );
}
