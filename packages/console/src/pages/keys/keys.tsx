import type { ApiKey, ApiKeyWithSecret, Permission } from '@signalbox/client';
import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import { useAgentNames } from '../../data/agent-names.ts';
import { useOpenNew } from '../../data/open-new.ts';
import { useApiMutation, useList } from '../../data/organization.tsx';
import { AdminsOnly } from '../../ui/admins-only.tsx';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Page } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time, useNow } from '../../ui/time.tsx';
import { KeyForm } from './key-form.tsx';
import { UsedToday } from './limits.tsx';
import { NewSecret } from './new-secret.tsx';
import { reachOf, reachSentence, reachWords } from './reach.ts';
import { EndOldSecret, Rotate } from './rotate.tsx';

type OpenDialog = { what: 'create' } | { what: 'edit' | 'rotate' | 'endOld' | 'delete'; key: ApiKey };

export function KeysPage() {
  return (
    <AdminsOnly title="API keys" action="manage API keys">
      <Keys />
    </AdminsOnly>
  );
}

function Keys() {
  const keys = useList(['keys'], (client, page) => client.keys.list(page));
  const [dialog, setDialog] = useState<OpenDialog>();
  useOpenNew(() => setDialog({ what: 'create' }), true);
  const [created, setCreated] = useState<ApiKeyWithSecret>();
  const agentNames = useAgentNames();
  const close = () => setDialog(undefined);
  const create = (
    <Button look="primary" onClick={() => setDialog({ what: 'create' })}>
      New API key
    </Button>
  );
  const columns: Column<ApiKey>[] = [
    { id: 'name', label: 'Name', cell: ({ name }) => <strong>{name}</strong> },
    {
      id: 'secret',
      label: 'Secret',
      width: '7rem',
      from: 'desktop',
      phone: 'under',
      cell: ({ secretPreview, expiringSecret }) => (
        <span className="row">
          <span className="mono quiet">{secretPreview}</span>
          {expiringSecret && <OldSecret secret={expiringSecret} />}
        </span>
      ),
    },
    {
      id: 'permission',
      label: 'Permission',
      width: '6.5rem',
      phone: 'aside',
      cell: ({ permission, scopes }) =>
        permission ? (
          <Badge tone={tones[permission]}>{permission}</Badge>
        ) : (
          <Badge>{`${scopes.length} scope${scopes.length > 1 ? 's' : ''}`}</Badge>
        ),
    },
    {
      id: 'access',
      label: 'Access',
      from: 'desktop',
      cell: (key) => {
        const reach = reachOf(key, agentNames);
        return <span title={reachSentence(reach)}>{reachWords(reach)}</span>;
      },
    },
    {
      id: 'cost',
      label: 'Cost today',
      // As wide as `$0.00 of $2.50`.
      width: '8rem',
      end: true,
      from: 'desktop',
      choice: 'shown',
      cell: (key) => <UsedToday apiKey={key} />,
    },
    {
      id: 'used',
      label: 'Last used',
      width: '6.5rem',
      phone: 'under-aside',
      cell: ({ lastUsedAt }) => (
        <>
          {lastUsedAt !== null && <span className="only-on-phone">used </span>}
          <Time at={lastUsedAt} />
          {lastUsedAt === null && <span className="only-on-phone"> used</span>}
        </>
      ),
    },
    { id: 'expires', label: 'Expires', width: '10.5rem', cell: (key) => <Expiry at={key.expiresAt} /> },
  ];
  return (
    <Page
      title="API keys"
      operation="createKey"
      about="API keys authenticate your programs. Keep them on the server; never ship them in a browser or app."
      actions={create}
    >
      <Table
        name="keys"
        caption="API keys"
        query={keys}
        columns={columns}
        rowKey={({ keyId }) => keyId}
        actions={(key) => (
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
        )}
        empty={
          <EmptyState icon={KeyRound} title="No keys yet" action={create}>
            Create one so that your programs can start sessions and follow them.
          </EmptyState>
        }
      />
      {dialog?.what === 'create' && <KeyForm onClose={close} onCreated={setCreated} />}
      {dialog?.what === 'edit' && <KeyForm apiKey={dialog.key} onClose={close} />}
      {dialog?.what === 'rotate' && <Rotate apiKey={dialog.key} onClose={close} onCreated={setCreated} />}
      {dialog?.what === 'endOld' && <EndOldSecret apiKey={dialog.key} onClose={close} />}
      {dialog?.what === 'delete' && <Delete apiKey={dialog.key} onClose={close} />}
      {created && <NewSecret apiKey={created} onClose={() => setCreated(undefined)} />}
    </Page>
  );
}

/** The secret before a rotation, which still works. */
function OldSecret({ secret: { preview, expiresAt } }: { secret: NonNullable<ApiKey['expiringSecret']> }) {
  return (
    <span className="small quiet">
      <span className="mono">{preview}</span> works until <Time at={expiresAt} />
    </span>
  );
}

/** The permission to be careful with. */
const tones: Partial<Record<Permission, Tone>> = { admin: 'warn' };

const SOON_MS = 14 * 86_400_000;

function Expiry({ at }: { at: string | null }) {
  const now = useNow();
  const left = at === null ? Number.POSITIVE_INFINITY : Date.parse(at) - now;
  if (left <= 0) return <Badge tone="bad">expired</Badge>;
  return (
    <span className="badge-and-words">
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
      done="Key deleted"
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
