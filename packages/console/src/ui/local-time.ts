// The times of inputs, which say no time zone: they are in the one in which the console shows times.
import { timeSettings } from '../lib/time-settings.ts';

const DAY_MS = 86_400_000;

/** The value of a `datetime-local` input in the API's format; undefined if it is not a valid time. */
export function instantOf(local: string): string | undefined {
  const wall = Date.parse(`${local}Z`);
  if (Number.isNaN(wall)) return undefined;
  // The clocks may change that day. A time that they show twice is the first one, and one that they skip is as much later.
  const before = wall - offsetMs(wall - DAY_MS);
  const after = wall - offsetMs(wall + DAY_MS);
  const instant = [before, after].find((one) => one + offsetMs(one) === wall) ?? before;
  return new Date(instant).toISOString();
}

/** A time as the value of a `datetime-local` input, to the second. */
export function localOf(instant: string | undefined): string {
  const at = Date.parse(instant ?? '');
  return Number.isNaN(at) ? '' : new Date(at + offsetMs(at)).toISOString().slice(0, 19);
}

/** How far the clocks of the zone are ahead of UTC. */
function offsetMs(instant: number): number {
  const { zone } = timeSettings();
  const format = new Intl.DateTimeFormat('en', {
    ...(zone !== undefined && { timeZone: zone }),
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
  const [year, month, ...more] = (['year', 'month', 'day', 'hour', 'minute', 'second'] as const).map(
    (part) => parts.get(part)!,
  );
  return Date.UTC(year!, month! - 1, ...more) - (instant - (instant % 1000));
}
