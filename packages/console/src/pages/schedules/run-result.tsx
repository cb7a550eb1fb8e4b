import type { ScheduleRun } from '@signalbox/client';
import { IdChip } from '../../ui/id-chip.tsx';
import { PlainText } from '../../ui/text.tsx';

/** Why a run or the last turn of its session failed, in the room that there is; otherwise its session. The row leads to that anyway. */
export function RunResult({ run: { status, sessionId, session, ...run } }: { run: ScheduleRun }) {
  const error = run.error ?? session?.error;
  if (error) {
    return (
      <span className="small" title={`${error.code}: ${error.message}`}>
        <code className="quiet">{error.code}</code> <PlainText text={error.message} />
      </span>
    );
  }
  if (status === 'missed') {
    return (
      <span className="quiet small">The service was not running, and the next run was due before it was back.</span>
    );
  }
  return sessionId && <IdChip value={sessionId} />;
}
