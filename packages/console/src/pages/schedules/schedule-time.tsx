import type { Schedule } from '@signalbox/client';
import { ExactTime } from '../../ui/time.tsx';
import { cronText } from './cron-text.ts';

/** When a schedule opens sessions: in words if possible, with the expression as a tooltip. */
export function ScheduleTime({
  schedule: { cron, timezone, at },
}: {
  schedule: Pick<Schedule, 'cron' | 'timezone' | 'at'>;
}) {
  if (at !== null) {
    return (
      <>
        Once, <ExactTime at={at} />
      </>
    );
  }
  if (cron === null) return null;
  const words = cronText(cron);
  return (
    <span title={`${cron} ${timezone ?? 'UTC'}`}>
      {words ? `${words[0]!.toUpperCase()}${words.slice(1)}` : <code>{cron}</code>}{' '}
      <span className="quiet small">{timezone ?? 'UTC'}</span>
    </span>
  );
}
