import type { ScheduleRun } from '@signalbox/client';
import { IdChip } from '../../ui/id-chip.tsx';
import { PlainText } from '../../ui/text.tsx';

/** The session of a run and why its last turn failed, or the reason why there is none. */
export function RunResult({ run }: { run: ScheduleRun }) {
  const { status, sessionId, session, manual } = run;
  const error = run.error ?? session?.error;
  return (
    <>
      {sessionId && <IdChip value={sessionId} />} {manual && <span className="quiet small">manual</span>}
      {status === 'missed' && (
        <span className="quiet small">The service was not running, and the next run was due before it was back.</span>
      )}
      {error && (
        <span className="small" title={`${error.code}: ${error.message}`}>
          <PlainText text={error.message} /> <code className="quiet">{error.code}</code>
        </span>
      )}
    </>
  );
}
