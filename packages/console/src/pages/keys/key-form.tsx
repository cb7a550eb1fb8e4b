// The form to create or edit a key.
import type { ApiKey, ApiKeyWithSecret, Permission, Scope } from '@signalbox/client';
import { scopes as allScopes, scopeFacts, scopesOfPermission } from '@signalbox/contract';
import { useState } from 'react';
import { agentOption, useAgentNames, useAgents } from '../../data/agent-names.ts';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Choices, Select, TextArea, TextField } from '../../ui/field.tsx';
import { MetadataField, metadataText, parseMetadata } from '../../ui/metadata.tsx';
import { fieldError, Notice } from '../../ui/notice.tsx';
import { Restriction, Several } from '../../ui/restriction.tsx';
import { inDays } from '../../ui/time.tsx';
import { LimitFields, limitTexts, parseLimits } from './limits.tsx';
import { reachOf, reachSentence, reachWarnings } from './reach.ts';

const permissions: { value: Permission | 'scopes'; label: string; about: string }[] = [
  { value: 'read', label: 'read', about: 'can list and read: for dashboards, exports and webhook receivers' },
  {
    value: 'write',
    label: 'write',
    about: 'can also start sessions, decide approvals, and change agents and webhooks',
  },
  { value: 'admin', label: 'admin', about: 'can also manage keys and secrets: for few programs' },
  { value: 'scopes', label: 'chosen scopes', about: 'can do only what you choose' },
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
  const [permission, setPermission] = useState<Permission | 'scopes'>(
    apiKey ? (apiKey.permission ?? 'scopes') : 'write',
  );
  const [chosen, setChosen] = useState<readonly Scope[]>(apiKey?.scopes ?? ['sessions:read', 'sessions:run']);
  const [days, setDays] = useState('');
  const [environments, setEnvironments] = useState<string[] | null>(apiKey?.environments ?? null);
  const [agents, setAgents] = useState<string[] | null>(apiKey?.agents ?? null);
  const [addresses, setAddresses] = useState((apiKey?.allowedIps ?? []).join('\n'));
  const [limits, setLimits] = useState(limitTexts(apiKey));
  const [metadata, setMetadata] = useState(metadataText(apiKey?.metadata ?? {}));
  const [metadataError, setMetadataError] = useState<string>();
  const allEnvironments = useEnvironmentNames();
  const allAgents = useAgents().data;
  const allowedIps = addresses.split(/[\s,]+/).filter(Boolean);
  const expiresAt = apiKey ? apiKey.expiresAt : days ? inDays(Number(days)) : null;
  const scopes = permission === 'scopes' ? chosen : [...scopesOfPermission[permission]];
  const key = {
    scopes: [...scopes],
    agents,
    environments,
    allowedIps: allowedIps.length > 0 ? allowedIps : null,
    expiresAt,
  };
  const reach = reachOf(key, useAgentNames());
  const save = useApiMutation(
    async (client, _: undefined) => {
      const body = {
        name,
        ...(permission === 'scopes' ? { scopes: [...chosen] } : { permission }),
        // The service refuses empty lists; they never mean every environment or every agent.
        environments,
        agents,
        allowedIps: key.allowedIps,
        ...parseLimits(limits),
        metadata: parseMetadata(metadata),
      };
      if (apiKey) return void (await client.keys.update(apiKey.keyId, body));
      onCreated?.(await client.keys.create({ ...body, expiresAt }));
    },
    ['keys'],
  );
  const errorFor = (path: string) => fieldError(save.error, path);
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
      beside={[
        'name',
        'scopes',
        'expiresAt',
        'environments',
        'agents',
        'allowedIps',
        'requestsPerMinute',
        'maxCostUsdPerDay',
        'metadata',
      ]}
      submit={submit}
    >
      <TextField
        label="Name"
        hint="The program that uses it, such as billing service"
        value={name}
        error={errorFor('name')}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Choices label="Permission" value={permission} onChange={setPermission} options={permissions} />
      {permission === 'scopes' && (
        <Several
          label="Scopes"
          options={allScopes.map((scope) => ({ value: scope, label: scope, about: scopeFacts[scope].allows }))}
          value={chosen}
          error={errorFor('scopes')}
          onChange={setChosen}
        />
      )}
      {!apiKey && (
        <Select
          label="Expires"
          value={days}
          options={lifetimes}
          error={errorFor('expiresAt')}
          onChange={(event) => setDays(event.currentTarget.value)}
        />
      )}
      <Restriction
        label="Environments"
        all="All environments"
        options={allEnvironments?.map((name) => ({ value: name, label: name }))}
        value={environments}
        error={errorFor('environments')}
        onChange={setEnvironments}
      />
      <Restriction
        label="Agents"
        all="All agents"
        options={allAgents?.map(agentOption)}
        value={agents}
        error={errorFor('agents')}
        onChange={setAgents}
      />
      <Disclosure title="More options" summary="Limits, IP addresses, metadata">
        <LimitFields value={limits} onChange={setLimits} errorFor={errorFor} />
        <TextArea
          label="Allowed IP addresses"
          hint="Addresses or CIDR ranges, one per line. Leave empty to allow any address."
          mono
          rows={2}
          value={addresses}
          error={errorFor('allowedIps')}
          onChange={(event) => setAddresses(event.currentTarget.value)}
        />
        <MetadataField value={metadata} onChange={setMetadata} error={metadataError ?? errorFor('metadata')} />
      </Disclosure>
      <p aria-live="polite">{reachSentence(reach)}</p>
      {reachWarnings(reach).map((text) => (
        <Notice key={text} kind="warn" live>
          <p>{text}</p>
        </Notice>
      ))}
    </FormDialog>
  );
}
