// The dialogs of a rotation: to begin one, and to end its grace period early.
import type { ApiKey, ApiKeyWithSecret } from '@signalbox/client';
import { useState } from 'react';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Choices } from '../../ui/field.tsx';
import { Time } from '../../ui/time.tsx';

const HOUR = 3600;
const gracePeriods = [
  {
    value: '0',
    label: 'Immediately',
    about: 'for a secret that may have leaked; programs fail until they have the new one',
  },
  { value: String(HOUR), label: 'In an hour', about: 'enough to change the programs that use it by hand' },
  { value: String(24 * HOUR), label: 'In a day', about: 'enough for the next deployment' },
  { value: String(7 * 24 * HOUR), label: 'In 7 days', about: 'for programs that others deploy' },
];

export function Rotate({
  apiKey,
  onClose,
  onCreated,
}: {
  apiKey: ApiKey;
  onClose: () => void;
  onCreated: (key: ApiKeyWithSecret) => void;
}) {
  const [grace, setGrace] = useState('0');
  const rotate = useApiMutation(
    (client, _: undefined) => client.keys.rotate(apiKey.keyId, { gracePeriodSeconds: Number(grace) }),
    ['keys'],
  );
  const { expiringSecret } = apiKey;
  return (
    <FormDialog
      title={`Rotate the secret of ${apiKey.name}?`}
      action="Rotate secret"
      danger
      onClose={onClose}
      submit={async () => onCreated(await rotate.mutateAsync(undefined))}
    >
      <p>You get a new secret, which works at once. Until the old one stops working, both do.</p>
      <Choices label="The old secret stops working" value={grace} onChange={setGrace} options={gracePeriods} />
      {expiringSecret && (
        <p>
          The secret before it, <span className="mono">{expiringSecret.preview}</span>, stops working immediately. It
          would have worked until <Time at={expiringSecret.expiresAt} />.
        </p>
      )}
    </FormDialog>
  );
}

export function EndOldSecret({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const end = useApiMutation((client, _: undefined) => client.keys.deleteOldSecret(apiKey.keyId), ['keys']);
  return (
    <FormDialog
      title={`End the old secret of ${apiKey.name}?`}
      action="End old secret"
      danger
      onClose={onClose}
      submit={() => end.mutateAsync(undefined)}
    >
      <p>
        Programs that still use <span className="mono">{apiKey.expiringSecret?.preview}</span> are refused immediately,
        and their open streams end. The new secret keeps working.
      </p>
    </FormDialog>
  );
}
