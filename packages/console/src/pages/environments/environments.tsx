import type { Environment, EnvironmentSecret } from '@signalbox/client';
import { ownProviders } from '@signalbox/contract';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { inList, useApiMutation, useList, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { TextArea, TextField } from '../../ui/field.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Menu } from '../../ui/menu.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { numberIn } from '../../ui/number.ts';
import { Page } from '../../ui/page.tsx';
import { Time } from '../../ui/time.tsx';

export function EnvironmentsPage() {
  const { may, organizationId } = useOrganization();
  const { environment } = useSearch({ from: '/$organizationId/environments' });
  const environments = useList(['environments'], (client, page) => client.environments.list(page));
  const [dialog, setDialog] = useState<
    { what: 'create' } | { what: 'keep'; environment: Environment } | { what: 'delete'; name: string }
  >();
  const close = () => setDialog(undefined);
  const columns: Column<Environment>[] = [
    { label: 'Name', cell: ({ name }) => <strong>{name}</strong> },
    { label: 'Keep ended sessions', cell: ({ keepSessionsDays }) => keptText(keepSessionsDays) },
    { label: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      label: 'Secrets',
      cell: ({ name }) => (
        <div className="row">
          {may('admin') && (
            <Link to="/$organizationId/environments" params={{ organizationId }} search={{ environment: name }}>
              Secrets
            </Link>
          )}
        </div>
      ),
    },
    {
      label: '',
      end: true,
      cell: (environment) =>
        may('write') && (
          <Menu
            label={`Actions for ${environment.name}`}
            items={[
              ...(may('admin')
                ? [{ label: 'Change retention', onSelect: () => setDialog({ what: 'keep', environment }) }]
                : []),
              {
                label: 'Delete',
                danger: true,
                onSelect: () => setDialog({ what: 'delete', name: environment.name }),
              },
            ]}
          />
        ),
    },
  ];
  return (
    <Page
      title="Environments"
      operation="createEnvironment"
      about="Each environment has its own sessions, secrets and webhook subscription."
      actions={may('write') && <Button onClick={() => setDialog({ what: 'create' })}>New environment</Button>}
    >
      <List
        caption="Environments"
        query={environments}
        columns={columns}
        rowKey={({ environmentId }) => environmentId}
        empty={<p>No environments. Create one to run sessions in it.</p>}
      />
      {environment && may('admin') && <Secrets environment={environment} key={environment} />}
      {dialog?.what === 'create' && <Create onClose={close} />}
      {dialog?.what === 'keep' && <Retention environment={dialog.environment} onClose={close} />}
      {dialog?.what === 'delete' && <Delete name={dialog.name} onClose={close} />}
    </Page>
  );
}

function keptText(days: number | null): string {
  if (days === null) return 'Operator’s default';
  return days === 1 ? '1 day' : `${days} days`;
}

function KeepSessionsField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
}) {
  return (
    <TextField
      label="Days to keep ended sessions"
      hint="After that they are deleted with their transcripts and deliveries. Leave empty for the operator’s limit, which is also the maximum."
      inputMode="numeric"
      value={value}
      error={error}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function Retention({ environment, onClose }: { environment: Environment; onClose: () => void }) {
  const { name, keepSessionsDays } = environment;
  const [days, setDays] = useState(String(keepSessionsDays ?? ''));
  const change = useApiMutation(
    (client, _: undefined) => client.environments.update(name, { keepSessionsDays: numberIn(days) ?? null }),
    ['environments'],
  );
  return (
    <FormDialog
      title={`Retention in ${name}`}
      action="Save"
      beside={['keepSessionsDays']}
      onClose={onClose}
      submit={() => change.mutateAsync(undefined)}
    >
      <KeepSessionsField value={days} onChange={setDays} error={fieldError(change.error, 'keepSessionsDays')} />
      <p className="quiet small">
        This also applies to sessions that have already ended: those older than the new limit are deleted soon. This
        can’t be undone.
      </p>
    </FormDialog>
  );
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('');
  const create = useApiMutation(
    (client, _: undefined) => client.environments.create({ name, keepSessionsDays: numberIn(days) ?? null }),
    ['environments'],
  );
  return (
    <FormDialog
      title="New environment"
      action="Create"
      beside={['name', 'keepSessionsDays']}
      onClose={onClose}
      submit={() => create.mutateAsync(undefined)}
    >
      <TextField
        label="Name"
        hint="Lower-case letters, digits, - and _, such as: testing"
        mono
        value={name}
        error={fieldError(create.error, 'name')}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <KeepSessionsField value={days} onChange={setDays} error={fieldError(create.error, 'keepSessionsDays')} />
    </FormDialog>
  );
}

function Delete({ name, onClose }: { name: string; onClose: () => void }) {
  const remove = useApiMutation((client, _: undefined) => client.environments.delete(name), ['environments']);
  return (
    <FormDialog
      title={`Delete ${name}?`}
      action="Delete environment"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>
        Its secrets are deleted too. You can’t delete an environment that has open sessions or a webhook subscription.
        This can’t be undone.
      </p>
    </FormDialog>
  );
}

function Secrets({ environment }: { environment: string }) {
  const navigate = useNavigate();
  const secrets = useList(['secrets', environment], (client, page) =>
    client.environments.secrets.list(environment, page),
  );
  const [dialog, setDialog] = useState<
    { what: 'set'; secret?: EnvironmentSecret } | { what: 'delete'; name: string }
  >();
  const close = () => setDialog(undefined);
  const columns: Column<EnvironmentSecret>[] = [
    { label: 'Name', cell: ({ name }) => <code>{name}</code> },
    { label: 'Sent to', cell: ({ allowedHosts }) => allowedHosts.join(', ') },
    { label: 'Version', cell: ({ version }) => version },
    { label: 'Last set', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
    {
      label: '',
      end: true,
      cell: (secret) => (
        <Menu
          label={`Actions for ${secret.name}`}
          items={[
            { label: 'Replace value', onSelect: () => setDialog({ what: 'set', secret }) },
            { label: 'Delete', danger: true, onSelect: () => setDialog({ what: 'delete', name: secret.name }) },
          ]}
        />
      ),
    },
  ];
  return (
    <section className="stack" aria-labelledby="secrets">
      <div className="row apart">
        <h2 id="secrets">Secrets of {environment}</h2>
        <div className="row">
          <Button onClick={() => setDialog({ what: 'set' })}>Set secret</Button>
          <Button look="bare" onClick={() => void navigate({ to: '.', search: {} })}>
            Close
          </Button>
        </div>
      </div>
      <p className="quiet">
        API keys for model providers and for the services that tools call. A value is never shown again. It is sent only
        to the hosts that you list, whatever a tool says.
      </p>
      <List
        caption={`Secrets of ${environment}`}
        query={secrets}
        columns={columns}
        rowKey={({ name }) => name}
        empty={
          <p>
            No secrets yet. Set the key of your model provider, such as <code>ANTHROPIC_API_KEY</code>.
          </p>
        }
      />
      {dialog?.what === 'set' && (
        <SetSecret environment={environment} onClose={close} {...(dialog.secret && { secret: dialog.secret })} />
      )}
      {dialog?.what === 'delete' && <DeleteSecret environment={environment} name={dialog.name} onClose={close} />}
    </section>
  );
}

/** The hosts of known providers, as suggestions. */
const providerHosts: Record<string, string> = Object.fromEntries(
  ownProviders.map(({ keyName, baseUrl }) => [keyName, new URL(baseUrl).host]),
);

function SetSecret({
  environment,
  secret,
  onClose,
}: {
  environment: string;
  secret?: EnvironmentSecret;
  onClose: () => void;
}) {
  const [name, setName] = useState(secret?.name ?? '');
  const [value, setValue] = useState('');
  const [hosts, setHosts] = useState((secret?.allowedHosts ?? []).join('\n'));
  const set = useApiMutation(
    (client, _: undefined) =>
      client.environments.secrets.set(environment, name, {
        value,
        allowedHosts: hosts.split(/[\s,]+/).filter(Boolean),
      }),
    ['secrets'],
  );
  const said = (path: string) => fieldError(set.error, path);
  return (
    <FormDialog
      title={secret ? `Replace ${secret.name}` : `Set a secret in ${environment}`}
      action="Save secret"
      beside={['name', 'value', 'allowedHosts']}
      onClose={onClose}
      submit={() => set.mutateAsync(undefined)}
    >
      <TextField
        label="Name"
        hint="Capital letters, digits and _. Tools use it as {{secrets.NAME}}"
        mono
        value={name}
        readOnly={secret !== undefined}
        error={said('name')}
        onChange={(event) => {
          const next = event.currentTarget.value;
          setName(next);
          if (hosts === '' && providerHosts[next]) setHosts(providerHosts[next]);
        }}
      />
      <TextField
        label="Value"
        type="password"
        autoComplete="off"
        value={value}
        error={said('value')}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
      <TextArea
        label="Allowed hosts"
        hint="One per line: api.example.com or *.example.com. Add the port if it isn’t the default."
        mono
        rows={3}
        value={hosts}
        error={said('allowedHosts')}
        onChange={(event) => setHosts(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

function DeleteSecret({ environment, name, onClose }: { environment: string; name: string; onClose: () => void }) {
  const remove = useApiMutation(
    (client, _: undefined) => client.environments.secrets.delete(environment, name),
    ['secrets'],
    {
      key: ['secrets', environment, 'list'],
      apply: inList((secret: EnvironmentSecret) => (secret.name === name ? undefined : secret)),
    },
  );
  return (
    <FormDialog
      title={`Delete ${name}?`}
      action="Delete secret"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>Agents in {environment} that use it will fail on their next call, with an error that names it.</p>
    </FormDialog>
  );
}
