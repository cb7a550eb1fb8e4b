// The clock of the command line, and times as people write and read them.

import { setTimeout } from 'node:timers/promises';

export interface Clock {
  now(): number;
}

export interface WaitingClock extends Clock {
  /** Rejects if the signal is aborted first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: WaitingClock = {
  now: () => Date.now(),
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
};

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

/** An ISO 8601 time from a time, a date, or an age or distance such as `2h`; undefined if it is neither. */
export function timeIn(text: string, direction: 'past' | 'future', clock: Clock): string | undefined {
  const [, amount, unit] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (unit !== undefined) {
    const distance = Number(amount) * unitMs[unit as keyof typeof unitMs];
    return new Date(clock.now() + (direction === 'past' ? -distance : distance)).toISOString();
  }
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)) return undefined;
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

/** `5 min ago`, `in 3 h`, or a date if it is further away than a month. */
export function relativeTime(iso: string, clock: Clock): string {
  const distance = clock.now() - Date.parse(iso);
  const away = Math.abs(distance);
  if (Number.isNaN(away) || away > 30 * unitMs.d) return iso.slice(0, 10);
  const words = (amount: number, unit: string) => {
    const text = `${Math.floor(amount)} ${unit}`;
    return distance >= 0 ? `${text} ago` : `in ${text}`;
  };
  if (away < 1_000) return 'now';
  if (away < unitMs.m) return words(away / 1_000, 's');
  if (away < unitMs.h) return words(away / unitMs.m, 'min');
  if (away < unitMs.d) return words(away / unitMs.h, 'h');
  return words(away / unitMs.d, 'd');
}
