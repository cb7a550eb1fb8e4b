// The signing secret: which one the receiver knows, and how it is exchanged without losing anything.
import type { WebhookSubscription } from '@signalbox/client';
import { type ReactNode, useState } from 'react';
import { useChange } from '../../organization.tsx';
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
        Version {secretVersion}. {isConfirmed ? 'The receiver has accepted it.' : 'No answer has accepted it yet.'}
      </p>
      {previousSecretExpiresAt !== null ? (
        <Rotation isConfirmed={isConfirmed} version={secretVersion} graceEndsAt={previousSecretExpiresAt} />
      ) : (
        !isConfirmed &&
        secretVersion > 1 && (
          <Notice kind="warn" title="The receiver may not know the new secret.">
            <p>
              The one before signs nothing any more, and no answer has accepted version {secretVersion}. Put it into the
              receiver; if it is lost, rotate again. What is refused meanwhile is tried again, and not lost.
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
      <h3>The rotation</h3>
      <ol className="rotation">
        <Step state="done" title="Rotated">
          Version {version} was made. Every delivery is signed with it, and with the old one as well.
        </Step>
        <Step state={isConfirmed ? 'done' : 'now'} title="Put the new secret into the receiver">
          Beside the old one. A receiver that knows only one of them loses nothing either.
        </Step>
        <Step state={isConfirmed ? 'done' : 'later'} title="Confirmed by the first answer">
          {isConfirmed
            ? 'An answer of 2xx came to a delivery that was signed with it.'
            : 'With the first 2xx to a delivery signed with it. A test shows it at once.'}
        </Step>
        <Step state={isConfirmed ? 'now' : 'later'} title="Take the old secret away">
          It signs until <ExactTime at={graceEndsAt} /> (<Time at={graceEndsAt} />
          ), then no more.
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
  { value: '86400', label: '24 hours', about: 'the usual: time to bring the new one to every receiver' },
  { value: '3600', label: '1 hour', about: 'where that is a matter of minutes' },
  { value: '604800', label: '7 days', about: 'the longest' },
  { value: '0', label: 'None', about: 'the old one has leaked: from now on it signs nothing' },
] as const;

export function RotateDialog({
  subscription: { environment, previousSecretExpiresAt },
  onClose,
  onMade,
}: {
  subscription: WebhookSubscription;
  onClose: () => void;
  onMade: (made: NewSigningSecret) => void;
}) {
  const [grace, setGrace] = useState<(typeof graces)[number]['value']>('86400');
  const rotate = useChange(
    async (client, _: undefined) => {
      const made = await client.webhookSubscriptions.rotateSecret(environment, { gracePeriodSeconds: Number(grace) });
      onMade({
        environment,
        secret: made.signingSecret,
        previousExpiresAt: made.previousSecretExpiresAt,
      });
    },
    ['webhooks'],
  );
  return (
    <FormDialog
      title={`Rotate the signing secret of ${environment}`}
      action="Rotate"
      danger={grace === '0'}
      onClose={onClose}
      submit={() => rotate.mutateAsync(undefined)}
    >
      <p>
        A new secret is made and shown once. For a time of grace the old one is good too, so that nothing is lost while
        you put the new one into the receiver.
      </p>
      <Choices label="How long the old one stays good" value={grace} onChange={setGrace} options={graces} />
      {grace === '0' && (
        <p className="small">
          Until the receiver has the new one it refuses what is sent. That is tried again, and not lost.
        </p>
      )}
      {previousSecretExpiresAt !== null && (
        <Notice kind="warn" title="A rotation is under way.">
          <p>The oldest secret stops signing now. Go on only if the receiver has the present one.</p>
        </Notice>
      )}
    </FormDialog>
  );
}
