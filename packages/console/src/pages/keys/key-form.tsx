// The form to create or edit a key.
import type { ApiKey, ApiKeyWithSecret, Permission } from '@signalbox/client';
import { useState } from 'react';
import { useEnvironmentNames } from '../../environment-names.ts';
import { useApiMutation } from '../../organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Checkbox, Choices, Select, TextArea, TextField } from '../../ui/field.tsx';
import { MetadataField, metadataText, parseMetadata } from '../../ui/metadata.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { inDays } from '../../ui/time.tsx';

const permissions: { value: Permission; label: string; about: string }[] = [
  { value: 'read', label: 'read', about: 'can list and read: for dashboards, exports and webhook receivers' },
  {
    value: 'write',
    label: 'write',
    about: 'can also start sessions, decide approvals, and change agents and webhooks',
  },
  { value: 'admin', label: 'admin', about: 'can also manage keys and secrets: for few programs' },
];

const lifetimes = [
  { value: '', label: 'Never' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
];

export function KeyForm({
  apiKey,
  onClose,
  onCreated,
}: {
  /** The key to edit; without it, a new one. */
  apiKey?: ApiKey;
  onClose: () => void;
  onCreated?: (key: ApiKeyWithSecret) => void;
}) {
  const [name, setName] = useState(apiKey?.name ?? '');
  const [permission, setPermission] = useState<Permission>(apiKey?.permission ?? 'write');
  const [days, setDays] = useState('');
  const [environments, setEnvironments] = useState<string[] | null>(apiKey?.environments ?? null);
  const [addresses, setAddresses] = useState((apiKey?.allowedIps ?? []).join('\n'));
  const [metadata, setMetadata] = useState(metadataText(apiKey?.metadata ?? {}));
  const [metadataError, setMetadataError] = useState<string>();
  const all = useEnvironmentNames();
  const save = useApiMutation(
    async (client, _: undefined) => {
      const allowedIps = addresses.split(/[\s,]+/).filter(Boolean);
      const body = {
        name,
        permission,
        // The service refuses an empty list; it never means every environment.
        environments,
        allowedIps: allowedIps.length > 0 ? allowedIps : null,
        metadata: parseMetadata(metadata),
      };
      if (apiKey) return void (await client.keys.update(apiKey.keyId, body));
      onCreated?.(await client.keys.create({ ...body, expiresAt: days ? inDays(Number(days)) : null }));
    },
    ['keys'],
  );
  const said = (path: string) => fieldError(save.error, path);
  async function submit() {
    setMetadataError(undefined);
    try {
      parseMetadata(metadata);
    } catch (error) {
      setMetadataError((error as Error).message);
      throw error;
    }
    await save.mutateAsync(undefined);
  }
  return (
    <FormDialog
      title={apiKey ? `Edit ${apiKey.name}` : 'New API key'}
      action={apiKey ? 'Save' : 'Create key'}
      onClose={onClose}
      beside={['name', 'expiresAt', 'allowedIps', 'metadata']}
      submit={submit}
    >
      <TextField
        label="Name"
        hint="The program that uses it, such as billing service"
        value={name}
        error={said('name')}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Choices label="Permission" value={permission} onChange={setPermission} options={permissions} />
      {!apiKey && (
        <Select
          label="Expires"
          value={days}
          options={lifetimes}
          error={said('expiresAt')}
          onChange={(event) => setDays(event.currentTarget.value)}
        />
      )}
      <fieldset>
        <legend>Environments</legend>
        <Checkbox
          label="All environments"
          checked={environments === null}
          onChange={(event) => setEnvironments(event.currentTarget.checked ? null : [])}
        />
        {environments !== null &&
          all?.map((name) => (
            <Checkbox
              key={name}
              label={name}
              checked={environments.includes(name)}
              onChange={(event) =>
                setEnvironments(
                  event.currentTarget.checked ? [...environments, name] : environments.filter((one) => one !== name),
                )
              }
            />
          ))}
      </fieldset>
      <details>
        <summary>More options: IP addresses and metadata</summary>
        <div className="stack">
          <TextArea
            label="Allowed IP addresses"
            hint="Addresses or CIDR ranges, one per line. Leave empty to allow any address."
            mono
            rows={2}
            value={addresses}
            error={said('allowedIps')}
            onChange={(event) => setAddresses(event.currentTarget.value)}
          />
          <MetadataField value={metadata} onChange={setMetadata} error={metadataError ?? said('metadata')} />
        </div>
      </details>
    </FormDialog>
  );
}
