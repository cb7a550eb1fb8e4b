import type { ApiKey, ApiKeyWithSecret, Permission } from '@signalbox/client';
import { useState } from 'react';
import { useAgentNames } from '../../agent-names.ts';
import { useApiMutation, useList, useOrganization } from '../../organization.tsx';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Time, useNow } from '../../ui/time.tsx';
import { AllowedOrigins } from './allowed-origins.tsx';
import { KeyForm } from './key-form.tsx';
import { UsedToday } from './limits.tsx';
import { NewSecret } from './new-secret.tsx';
import { reachOf, reachSentence } from './reach.ts';
import { EndOldSecret, Rotate } from './rotate.tsx';

type OpenDialog = { what: 'create' } | { what: 'edit' | 'rotate' | 'endOld' | 'delete'; key: ApiKey };

export function KeysPage() {
  const { may } = useOrganization();
  if (!may('admin')) {
    return (
      <Page title="API keys">
        <Notice title="Only admins can manage API keys.">
          <p>Ask an admin of the organization for a key, or for the admin role.</p>
        </Notice>
      </Page>
    );
  }
  return <Keys />;
}

function Keys() {
  const keys = useList(['keys'], (client, page) => client.keys.list(page));
  const [dialog, setDialog] = useState<OpenDialog>();
  const [created, setCreated] = useState<ApiKeyWithSecret>();
  const agentNames = useAgentNames();
  const close = () => setDialog(undefined);
  const create = (
    <Button look="primary" onClick={() => setDialog({ what: 'create' })}>
      New API key
    </Button>
  );
  const columns: Column<ApiKey>[] = [
    {
      label: 'Name',
      cell: (key) => (
        <div className="stack tight">
          <strong>{key.name}</strong>
          <span className="mono quiet">{key.secretPreview}</span>
          {key.expiringSecret && (
            <span className="small quiet">
              <span className="mono">{key.expiringSecret.preview}</span> works until{' '}
              <Time at={key.expiringSecret.expiresAt} />
            </span>
          )}
        </div>
      ),
    },
    {
      label: 'Permission',
      cell: ({ permission, scopes }) =>
        permission ? (
          <Badge tone={tones[permission]}>{permission}</Badge>
        ) : (
          <Badge>{`${scopes.length} scope${scopes.length > 1 ? 's' : ''}`}</Badge>
        ),
    },
    { label: 'Access', cell: (key) => reachSentence(reachOf(key, agentNames)) },
    { label: 'Cost today', cell: (key) => <UsedToday apiKey={key} /> },
    { label: 'Last used', cell: (key) => <Time at={key.lastUsedAt} /> },
    { label: 'Expires', cell: (key) => <Expiry at={key.expiresAt} /> },
    {
      label: '',
      end: true,
      cell: (key) => (
        <Menu
          label={`Actions for ${key.name}`}
          items={[
            { label: 'Edit', onSelect: () => setDialog({ what: 'edit', key }) },
            { label: 'Rotate secret', onSelect: () => setDialog({ what: 'rotate', key }) },
            ...(key.expiringSecret
              ? [{ label: 'End the old secret', danger: true, onSelect: () => setDialog({ what: 'endOld', key }) }]
              : []),
            { label: 'Delete', danger: true, onSelect: () => setDialog({ what: 'delete', key }) },
          ]}
        />
      ),
    },
  ];
  return (
    <Page
      title="API keys"
      operation="createKey"
      about="API keys authenticate your programs. Keep them on the server; never ship them in a browser or app."
      actions={create}
    >
      <List
        caption="API keys"
        query={keys}
        columns={columns}
        rowKey={({ keyId }) => keyId}
        empty={
          <>
            <h2>No keys yet</h2>
            <p>Create one so that your programs can start sessions and follow them.</p>
            {create}
          </>
        }
      />
      <AllowedOrigins />
      {dialog?.what === 'create' && <KeyForm onClose={close} onCreated={setCreated} />}
      {dialog?.what === 'edit' && <KeyForm apiKey={dialog.key} onClose={close} />}
      {dialog?.what === 'rotate' && <Rotate apiKey={dialog.key} onClose={close} onCreated={setCreated} />}
      {dialog?.what === 'endOld' && <EndOldSecret apiKey={dialog.key} onClose={close} />}
      {dialog?.what === 'delete' && <Delete apiKey={dialog.key} onClose={close} />}
      {created && <NewSecret apiKey={created} onClose={() => setCreated(undefined)} />}
    </Page>
  );
}

const tones: Record<Permission, Tone | undefined> = { read: undefined, write: 'live', admin: 'warn' };

const SOON_MS = 14 * 86_400_000;

function Expiry({ at }: { at: string | null }) {
  const now = useNow();
  const left = at === null ? Number.POSITIVE_INFINITY : Date.parse(at) - now;
  if (left <= 0) return <Badge tone="bad">expired</Badge>;
  return (
    <span className="row">
      <Time at={at} />
      {left < SOON_MS && <Badge tone="warn">soon</Badge>}
    </span>
  );
}

function Delete({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const remove = useApiMutation((client, _: undefined) => client.keys.delete(apiKey.keyId), ['keys']);
  return (
    <FormDialog
      title={`Delete ${apiKey.name}?`}
      action="Delete key"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>
        Programs that use it are refused immediately, and their open streams end. This can’t be undone. Last used:{' '}
        <Time at={apiKey.lastUsedAt} />.
      </p>
    </FormDialog>
  );
}
