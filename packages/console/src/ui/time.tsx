import { useSyncExternalStore } from 'react';
import { timeSettings, useTimeSettings } from '../lib/time-settings.ts';

/** The current time, by one timer for all that show it, so that they agree. */
function createTicker(everyMs: number) {
  const listeners = new Set<() => void>();
  let now = Date.now();
  let timer: ReturnType<typeof setInterval> | undefined;
  function tick(): void {
    now = Date.now();
    for (const listener of listeners) listener();
  }
  function subscribe(listener: () => void): () => void {
    listeners.add(listener);
    if (timer === undefined) {
      // The timer was stopped.
      now = Date.now();
      timer = setInterval(tick, everyMs);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }
  return { subscribe, now: () => now };
}

const TICK_MS = 10_000;
const slow = createTicker(TICK_MS);
const fast = createTicker(500);
const never = () => () => {};

/** The current time, updated every 10 seconds. */
export function useNow(): number {
  return useSyncExternalStore(slow.subscribe, slow.now);
}

/** The current time; it moves every half second while `isMoving`, for what grows while one looks. */
export function useTicking(isMoving: boolean): number {
  return useSyncExternalStore(isMoving ? fast.subscribe : never, fast.now);
}

/** The console is in English: the person's own, if the browser names one, with the hours that the person is used to. */
function dateLanguage(): { language: string; hourCycle: 'h12' | 'h23' } {
  const language = navigator.languages.find(isEnglish) ?? 'en';
  const own = new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions();
  return { language, hourCycle: own.hour12 ? 'h12' : 'h23' };
}

function isEnglish(language: string): boolean {
  try {
    return new Intl.Locale(language).language === 'en';
  } catch {
    // Chromium has "en-US@posix" where the system has no language.
    return false;
  }
}

/** A format in English and in the person's time zone, which it names if that is not the browser's and `isNamed`. */
export function formatter(
  options: Intl.DateTimeFormatOptions,
  { isNamed = false }: { isNamed?: boolean } = {},
): (instant: Date) => string {
  const formats = new Map<string | undefined, Intl.DateTimeFormat>();
  return (instant) => {
    const { zone } = timeSettings();
    let format = formats.get(zone);
    if (!format) {
      const { language, hourCycle } = dateLanguage();
      format = new Intl.DateTimeFormat(language, {
        ...options,
        ...(options.hour && { hourCycle }),
        ...(zone && { timeZone: zone }),
        ...(zone && isNamed && { timeZoneName: 'short' as const }),
      });
      formats.set(zone, format);
    }
    return format.format(instant);
  };
}

const date = { year: 'numeric', month: 'short', day: 'numeric' } as const;
const exact = formatter({ ...date, hour: 'numeric', minute: '2-digit', second: '2-digit' }, { isNamed: true });
const short = formatter({ month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
const day = formatter(date);
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });
const FAR_MS = 30 * 86_400_000;
/** Units with their length and the count at which the next unit is used. */
const units: [Intl.RelativeTimeFormatUnit, lengthMs: number, limit: number][] = [
  ['minute', 60_000, 60],
  ['hour', 3_600_000, 24],
  ['day', 86_400_000, Number.POSITIVE_INFINITY],
];

/**
 * A time as the person chose (lib/time-settings.ts), with the exact one as a tooltip: relative, which is a date if it is more than 30
 * days away, or as a date and time.
 */
export function Time({ at, absent = 'never' }: { at: string | null; absent?: string }) {
  const current = useNow();
  const { style } = useTimeSettings();
  if (at === null) return <span className="quiet">{absent}</span>;
  const instant = new Date(at);
  const ms = instant.getTime() - current;
  const isFar = Math.abs(ms) > FAR_MS;
  return (
    <time dateTime={at} title={exact(instant)}>
      {style === 'relative' ? formatRelative(ms, instant) : isFar ? day(instant) : short(instant)}
    </time>
  );
}

/** A day such as `March 1, 2027`. */
export const longDay: (instant: Date) => string = formatter({ year: 'numeric', month: 'long', day: 'numeric' });

/** A time in full. */
export function ExactTime({ at }: { at: string }) {
  useTimeSettings();
  return <time dateTime={at}>{formatExact(at)}</time>;
}

/** A time in full, as text. */
export function formatExact(at: string): string {
  return exact(new Date(at));
}

/** A relative time in words. */
export function formatRelative(ms: number, instant: Date): string {
  if (Math.abs(ms) > FAR_MS) return day(instant);
  // A recent event may be later than the last tick.
  if (Math.abs(ms) < 60_000) return ms > TICK_MS ? 'in a moment' : 'just now';
  const [unit, length] = units.find(([, size, limit]) => Math.round(Math.abs(ms) / size) < limit)!;
  // Without the full stop of "min.", which does not end a sentence.
  return relative.format(Math.round(ms / length), unit).replace('.', '');
}

/** The time now, for a request; `useNow` is for what is shown. */
export const currentTime = (): number => Date.now();

/** The time in so many days, in the API's format. */
export function inDays(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString();
}

/** The start of a UTC month in the API's format: 0 is the current month, -1 the previous one. */
export function monthFromNow(months: number): string {
  const now = new Date(Date.now());
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months)).toISOString();
}

/** The browser's time zone by its IANA name. */
export function ownTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The time zone in which times are shown, by its IANA name. */
export function useTimeZone(): string {
  return useTimeSettings().zone ?? ownTimeZone();
}

/** The IANA names that the browser knows. */
export function timeZones(): readonly string[] {
  return Intl.supportedValuesOf('timeZone');
}

/** A duration in at most two units: `1 m 12 s`, `340 ms`. */
export function duration(ms: number): string {
  // Rounded before the unit is chosen, so that 59.6 s is 1 m.
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 100) return `${(tenths / 10).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return inUnits(minutes, 'm', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? inUnits(hours, 'h', minutes % 60, 'm') : inUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function inUnits(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}
