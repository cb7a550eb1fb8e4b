// The times of points in charts of analytics.
import type { AnalyticsStep } from '@signalbox/contract';

const labels: Record<AnalyticsStep, Intl.DateTimeFormat> = {
  minute: new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' }),
  hour: new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: 'numeric', minute: '2-digit' }),
  day: new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' }),
};

/** The time of a point: of a minute or an hour in the browser's zone, of a day in UTC. */
export function pointLabel({ at }: { at: string }, step: AnalyticsStep): string {
  return labels[step].format(new Date(at));
}

export const units = { minute: 'Minute', hour: 'Hour', day: 'Day (UTC)' } as const;
