import type { Schedule } from '@signalbox/client';
import { ExactTime } from '../../ui/time.tsx';
import { cronText } from './cron-text.ts';

/** When a schedule opens sessions, in words if possible. */
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
    <>
      {words && `${words[0]!.toUpperCase()}${words.slice(1)} `}
      <span className="quiet small">
        {/* Long expressions wrap at spaces. */}
        <code className={cron.length < 30 ? 'nowrap' : undefined}>{cron}</code>{' '}
        <span className="nowrap">{timezone ?? 'UTC'}</span>
      </span>
    </>
  );
}
