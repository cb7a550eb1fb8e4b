// The secrets of an environment, whose values can't be read.
import type { EnvironmentSecret } from '@signalbox/client';
import { ownProviders } from '@signalbox/contract';
import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import { inList, useApiMutation, useList } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { TextArea, TextField } from '../../ui/field.tsx';
import { refusal } from '../../ui/form.ts';
import { Menu } from '../../ui/menu.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

export function Secrets({ environment }: { environment: string }) {
  const secrets = useList(['secrets', environment], (client, page) =>
    client.environments.secrets.list(environment, page),
  );
  const [dialog, setDialog] = useState<
    { what: 'set'; secret?: EnvironmentSecret } | { what: 'delete'; name: string }
  >();
  const close = () => setDialog(undefined);
  const columns: Column<EnvironmentSecret>[] = [
    { id: 'name', label: 'Name', cell: ({ name }) => <code>{name}</code> },
    { id: 'hosts', label: 'Sent to', phone: 'under', cell: ({ allowedHosts }) => allowedHosts.join(', ') },
    { id: 'version', label: 'Version', width: '7rem', cell: ({ version }) => version },
    {
      id: 'updated',
      label: 'Last set',
      width: '9rem',
      phone: 'under-aside',
      cell: ({ updatedAt }) => <Time at={updatedAt} />,
    },
  ];
  return (
    <section className="stack" aria-labelledby="secrets">
      <div className="row apart">
        <h2 id="secrets">Secrets</h2>
        <Button onClick={() => setDialog({ what: 'set' })}>Set secret</Button>
      </div>
      <p className="quiet">
        API keys for model providers and for the services that tools call. A value is never shown again. It is sent only
        to the hosts that you list, whatever a tool says.
      </p>
      <Table
        name="secrets"
        caption={`Secrets of ${environment}`}
        query={secrets}
        columns={columns}
        rowKey={({ name }) => name}
        actions={(secret) => (
          <Menu
            label={`Actions for ${secret.name}`}
            items={[
              { label: 'Replace value', onSelect: () => setDialog({ what: 'set', secret }) },
              { label: 'Delete', danger: true, onSelect: () => setDialog({ what: 'delete', name: secret.name }) },
            ]}
          />
        )}
        empty={
          <EmptyState icon={KeyRound} title="No secrets yet">
            Set the key of your model provider, such as <code>ANTHROPIC_API_KEY</code>.
          </EmptyState>
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
    async ({ environments: { secrets } }, _: undefined) => {
      if (name === '') throw refusal('name', 'must not be empty');
      const params = { value, allowedHosts: hosts.split(/[\s,]+/).filter(Boolean) };
      return await (secret ? secrets.set(environment, name, params) : secrets.create(environment, name, params));
    },
    ['secrets', 'environments'],
  );
  const errorFor = (path: string) => fieldError(set.error, path);
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
        error={errorFor('name')}
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
        error={errorFor('value')}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
      <TextArea
        label="Allowed hosts"
        hint="One per line: api.example.com or *.example.com. Add the port if it isn’t the default."
        mono
        rows={3}
        value={hosts}
        error={errorFor('allowedHosts')}
        onChange={(event) => setHosts(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

function DeleteSecret({ environment, name, onClose }: { environment: string; name: string; onClose: () => void }) {
  const remove = useApiMutation(
    (client, _: undefined) => client.environments.secrets.delete(environment, name),
    ['secrets', 'environments'],
    {
      key: ['secrets', environment, 'list'],
      apply: inList((secret: EnvironmentSecret) => (secret.name === name ? undefined : secret)),
    },
  );
  return (
    <FormDialog
      title={`Delete ${name}?`}
      action="Delete secret"
      done="Secret deleted"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>Agents in {environment} that use it will fail on their next call, with an error that names it.</p>
    </FormDialog>
  );
}
