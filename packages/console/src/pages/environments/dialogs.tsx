// Creating, changing and deleting an environment.
import type { Environment } from '@signalbox/client';
import { useState } from 'react';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { numberIn } from '../../ui/number.ts';

export function keptText(days: number | null): string {
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

export function Retention({ environment, onClose }: { environment: Environment; onClose: () => void }) {
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

export function Create({ onClose }: { onClose: () => void }) {
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

export function Delete({ name, onClose, onDeleted }: { name: string; onClose: () => void; onDeleted?: () => void }) {
  const remove = useApiMutation((client, _: undefined) => client.environments.delete(name), ['environments']);
  return (
    <FormDialog
      title={`Delete ${name}?`}
      action="Delete environment"
      done="Environment deleted"
      danger
      onClose={onClose}
      submit={async () => {
        await remove.mutateAsync(undefined);
        onDeleted?.();
      }}
    >
      <p>
        Its secrets are deleted too. You can’t delete an environment that has open sessions or a webhook subscription.
        This can’t be undone.
      </p>
    </FormDialog>
  );
}
