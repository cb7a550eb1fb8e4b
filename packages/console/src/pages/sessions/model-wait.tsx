// In place of a response while the model does not respond, or is not called yet: what happened, and what happens next.
import type { Session } from '@signalbox/client';
import { Notice } from '../../ui/notice.tsx';
import { Time } from '../../ui/time.tsx';

export function ModelWait({ session: { waitingFor } }: { session: Session }) {
  if (waitingFor?.type !== 'model' || waitingFor.retryAt === undefined) return null;
  if (waitingFor.error?.code === 'model_limit_reached') {
    return (
      <Notice title="The model is called in turn">
        <p>{sentence(waitingFor.error.message)}</p>
        <p>
          Calls wait in order. This one is made at about <Time at={waitingFor.retryAt} />, or before. The turn’s time
          does not run meanwhile.
        </p>
      </Notice>
    );
  }
  return (
    <Notice kind="warn" title="The model is unavailable">
      {waitingFor.error && <p>{sentence(waitingFor.error.message)}</p>}
      <p>
        The model is called again <Time at={waitingFor.retryAt} />, and the turn continues when it responds. If it stays
        unavailable for too long, the turn fails, and can be retried.
      </p>
    </Notice>
  );
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
