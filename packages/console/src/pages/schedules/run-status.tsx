import type { ScheduleRun } from '@signalbox/client';
import { Status } from '../../ui/badge.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';

/** The status of a run, with its session or the reason why there is none. */
export function RunStatus({
  run,
}: {
  run: Pick<ScheduleRun, 'status' | 'sessionId' | 'manual'> & { error?: ScheduleRun['error'] };
}) {
  return (
    <>
      <Status value={run.status} /> {run.manual && <span className="quiet small">manual </span>}
      {run.sessionId && <SessionLink sessionId={run.sessionId} />}
      {run.status === 'missed' && (
        <span className="quiet small">The service was not running, and the next run was due before it was back.</span>
      )}
      {run.error && (
        <span className="small">
          <PlainText text={run.error.message} /> <code className="quiet">{run.error.code}</code>
        </span>
      )}
    </>
  );
}
