// In place of a response while the model does not respond: what happened, and what happens next.
import type { Agent, Session } from '@signalbox/client';
import { Notice } from '../../ui/notice.tsx';
import { duration, Time } from '../../ui/time.tsx';

export function ModelWait({ session: { waitingFor }, agent }: { session: Session; agent: Agent | undefined }) {
  if (waitingFor?.type !== 'model' || waitingFor.retryAt === undefined) return null;
  const outageSeconds = agent?.limits.modelOutageSeconds ?? 0;
  return (
    <Notice kind="warn" title="The model is unavailable">
      {waitingFor.error && <p>{sentence(waitingFor.error.message)}</p>}
      <p>
        The model is called again <Time at={waitingFor.retryAt} />, and the turn continues when it responds.
        {outageSeconds > 0 &&
          ` If it has not responded after ${duration(outageSeconds * 1000)}, the turn fails, and can be retried.`}
      </p>
    </Notice>
  );
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
