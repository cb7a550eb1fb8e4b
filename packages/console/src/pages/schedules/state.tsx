// Whether a schedule works, and how its runs went.
import type { LastScheduleRun, Schedule } from '@signalbox/client';
import { maxFailedRuns } from '@signalbox/contract';
import { Link } from '@tanstack/react-router';
import { useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Badge, Status } from '../../ui/badge.tsx';
import { Notice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';

/**
 * A badge: the status, or that runs fail if the schedule is enabled. Several in a row are no coincidence. During an upgrade, a node of the
 * release before does not say how many there are.
 */
export function ScheduleState({ schedule: { status, failedRuns, nextAt } }: { schedule: Schedule }) {
  if (status === 'paused' || !(failedRuns > 0)) return <Status value={status} />;
  return <Badge tone={failedRuns > 1 ? 'bad' : 'warn'}>{nextAt === null ? 'failed' : 'failing'}</Badge>;
}

/** A badge: how the session of a run is, or why there is none. */
export function RunStatus({ run: { status, session } }: { run: LastScheduleRun }) {
  if (session?.error && session.status === 'idle') return <Badge tone="bad">turn failed</Badge>;
  return <Status value={session?.status ?? status} />;
}

/** `3 runs`, `10+ runs`. */
export function failedRunsText(failedRuns: number): string {
  return failedRuns >= maxFailedRuns ? `${maxFailedRuns}+ runs` : counted(failedRuns, 'run');
}

/** How many runs have failed, and why the last one did. Renders nothing if none has since one succeeded. */
export function FailedRuns({ schedule: { failedRuns, lastRun } }: { schedule: Schedule }) {
  const { organizationId } = useOrganization();
  if (!(failedRuns > 0)) return null;
  const error = lastRun?.error ?? lastRun?.session?.error;
  const title = failedRuns === 1 ? 'The last run failed' : `${failedRunsText(failedRuns)} failed in a row`;
  return (
    <Notice kind={failedRuns > 1 ? 'bad' : 'warn'} title={title}>
      {error ? (
        <p>
          <PlainText text={error.message} /> <code className="small">{error.code}</code>
        </p>
      ) : (
        <p>The runs below say why. Another one is in progress, or its outcome is not known.</p>
      )}
      {lastRun?.sessionId && lastRun.session?.error && (
        <p>
          <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId: lastRun.sessionId }}>
            Open the last session
          </Link>
        </p>
      )}
    </Notice>
  );
}
