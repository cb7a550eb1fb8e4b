// The times of points in charts of analytics.
import type { AnalyticsStep } from '@signalbox/contract';
import { useTimeSettings } from '../lib/time-settings.ts';
import { formatter } from './time.tsx';

const utcDay = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const labels: Record<AnalyticsStep, (instant: Date) => string> = {
  minute: formatter({ hour: 'numeric', minute: '2-digit' }, { isNamed: true }),
  hour: formatter({ weekday: 'short', hour: 'numeric', minute: '2-digit' }, { isNamed: true }),
  day: (instant) => utcDay.format(instant),
};

/** The time of a point: of a minute or an hour in the person's zone, of a day in UTC. */
export function pointLabel({ at }: { at: string }, step: AnalyticsStep): string {
  return labels[step](new Date(at));
}

/** `pointLabel` for a component, which is drawn again when the person chooses another zone. */
export function usePointLabel(): typeof pointLabel {
  useTimeSettings();
  return pointLabel;
}

export const units = { minute: 'Minute', hour: 'Hour', day: 'Day (UTC)' } as const;
