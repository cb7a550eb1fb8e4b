// The signing secret: whether the receiver knows the new one, and its rotation without lost deliveries.
import type { WebhookSubscription } from '@signalbox/client';
import { type ReactNode, useState } from 'react';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Choices } from '../../ui/field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import type { NewSigningSecret } from './create.tsx';
import './webhooks.css';

export function SigningSecret({ subscription }: { subscription: WebhookSubscription }) {
  const { secretVersion, confirmedSecretVersion, previousSecretExpiresAt } = subscription;
  const isConfirmed = confirmedSecretVersion === secretVersion;
  return (
    <section className="card" aria-labelledby="signing-secret">
      <h2 id="signing-secret">Signing secret</h2>
      <p>
        Version {secretVersion}.{' '}
        {isConfirmed ? 'The receiver has accepted it.' : 'The receiver has not accepted it yet.'}
      </p>
      {previousSecretExpiresAt !== null ? (
        <Rotation isConfirmed={isConfirmed} version={secretVersion} graceEndsAt={previousSecretExpiresAt} />
      ) : (
        !isConfirmed &&
        secretVersion > 1 && (
          <Notice kind="warn" title="The receiver may not know the new secret.">
            <p>
              The previous secret is no longer used, and the receiver has not accepted version {secretVersion} yet. Add
              it to the receiver, or rotate again if you lost it. Refused deliveries are retried, not lost.
            </p>
          </Notice>
        )
      )}
    </section>
  );
}

type StepState = 'done' | 'now' | 'later';

function Rotation({
  isConfirmed,
  version,
  graceEndsAt,
}: {
  isConfirmed: boolean;
  version: number;
  graceEndsAt: string;
}) {
  return (
    <>
      <h3>Rotation</h3>
      <ol className="rotation">
        <Step state="done" title="Rotated">
          Version {version} was created. Every delivery is signed with both the new and the old secret.
        </Step>
        <Step state={isConfirmed ? 'done' : 'now'} title="Add the new secret to the receiver">
          Keep the old one too. A receiver that knows only one of them still accepts deliveries.
        </Step>
        <Step state={isConfirmed ? 'done' : 'later'} title="Confirmed by the receiver">
          {isConfirmed
            ? 'The receiver returned 2xx to a delivery signed with it.'
            : 'Happens with the first 2xx response to a delivery signed with it. Send a test to confirm it now.'}
        </Step>
        <Step state={isConfirmed ? 'now' : 'later'} title="Remove the old secret">
          It is valid until <ExactTime at={graceEndsAt} /> (<Time at={graceEndsAt} />
          ).
        </Step>
      </ol>
    </>
  );
}

const stepWords: Record<StepState, string> = { done: 'done', now: 'next', later: 'later' };

function Step({ state, title, children }: { state: StepState; title: string; children: ReactNode }) {
  return (
    <li data-state={state} aria-current={state === 'now' ? 'step' : undefined}>
      <div>
        <strong>{title}</strong> <span className="quiet small">{stepWords[state]}</span>
      </div>
      <div className="small">{children}</div>
    </li>
  );
}

const graces = [
  { value: '86400', label: '24 hours', about: 'recommended' },
  { value: '3600', label: '1 hour', about: 'if you can update the receiver in minutes' },
  { value: '604800', label: '7 days', about: 'maximum' },
  { value: '0', label: 'Revoke now', about: 'if it leaked' },
] as const;

export function RotateDialog({
  subscription: { environment, previousSecretExpiresAt },
  onClose,
  onCreated,
}: {
  subscription: WebhookSubscription;
  onClose: () => void;
  onCreated: (created: NewSigningSecret) => void;
}) {
  const [grace, setGrace] = useState<(typeof graces)[number]['value']>('86400');
  const rotate = useApiMutation(
    async (client, _: undefined) => {
      const created = await client.webhookSubscriptions.rotateSecret(environment, {
        gracePeriodSeconds: Number(grace),
      });
      onCreated({
        environment,
        secret: created.signingSecret,
        previousExpiresAt: created.previousSecretExpiresAt,
      });
    },
    ['webhooks'],
  );
  return (
    <FormDialog
      title={`Rotate the signing secret of ${environment}`}
      action="Rotate secret"
      danger={grace === '0'}
      onClose={onClose}
      submit={() => rotate.mutateAsync(undefined)}
    >
      <p>
        You get a new secret, shown once. During the grace period the old one stays valid, so nothing is lost while you
        update the receiver.
      </p>
      <Choices label="Keep the old secret valid for" value={grace} onChange={setGrace} options={graces} />
      {grace === '0' && (
        <p className="small">Until you update the receiver, it refuses deliveries. They are retried, not lost.</p>
      )}
      {previousSecretExpiresAt !== null && (
        <Notice kind="warn" title="A rotation is already in progress">
          <p>The oldest secret stops working now. Continue only if the receiver has the current one.</p>
        </Notice>
      )}
    </FormDialog>
  );
}
