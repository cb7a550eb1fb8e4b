// When a schedule's Sessions are due: arithmetic over croner. It reads no clock.
//
// Where clocks change, croner is told to take every time of day that somebody wrote down as meant (`no-wildcard`, as Vixie
// cron does, and for lists such as `0 2,14 * * *` too): one that does not exist runs when the gap ends, one that comes twice
// runs the first time. A pattern with a wildcard or step in minute or hour goes by the clock: it runs through the repeated
// hour, and skips what the gap leaves out.
import { Cron } from 'croner';
import { invalidField } from '../lib/api-error.ts';

/** Either `cron` with `timezone`, or `at`. */
export interface Timing {
  cron: string | null;
  timezone: string | null;
  at: Date | null;
}

/** What is due of a schedule. */
export interface DueOccurrences {
  /** The newest occurrence: the one that runs. */
  last: Date;
  /** Those before it, newest first; at most MAX_MISSED. */
  missed: Date[];
  /** Whether there were more than those. */
  more: boolean;
}

// A schedule of every minute has 43,200 occurrences in a month. Nobody reads so many, and each would be a row.
export const MAX_MISSED = 100;

// The rarest day there is, 29 February on some day of the week, comes after 40 years at most. Looking on for what never comes costs a
// tenth of a second for a thousand years.
const SEARCH_MS = 48 * 365.25 * 24 * 3_600_000;

/** Throws the 400 that names the field and says what would be right. `at` in the past is not looked at. */
export function checkTiming({ cron, timezone, at }: Timing, now: Date): void {
  if (cron === null && at === null) throw invalidField('cron', 'is required, or at');
  if (cron !== null && at !== null) throw invalidField('at', 'must not be given together with cron');
  if (cron === null) {
    if (timezone !== null)
      throw invalidField('timezone', 'is only allowed with cron: at is the same time in every time zone');
    return;
  }
  checkTimezone(timezone);
  if (cron.trim().startsWith('@')) throw invalidField('cron', 'does not support names: @daily is "0 0 * * *"');
  const { length } = cron.trim().split(/\s+/);
  if (length !== 5)
    throw invalidField(
      'cron',
      `must be five fields, minute, hour, day of month, month and day of week, such as "0 9 * * 1-5"; it has ${length}${length === 6 || length === 7 ? ' (there are no seconds or years)' : ''}`,
    );
  let next: Date | null;
  try {
    next = nextOf(cron, timezone, now);
  } catch (error) {
    throw invalidField('cron', `is not a cron expression such as "0 9 * * 1-5": ${cronError(error as Error)}`);
  }
  if (!next) throw invalidField('cron', 'never occurs: no day matches it');
}

/** The first occurrence after an instant; null where there is none. */
export function nextOccurrence({ cron, timezone, at }: Timing, after: Date): Date | null {
  if (cron === null) return at && at > after ? at : null;
  return nextOf(cron, timezone, after);
}

/** The occurrences from `first`, which is one, up to and with `until`. */
export function dueOccurrences({ cron, timezone }: Timing, first: Date, until: Date): DueOccurrences {
  if (cron === null) return { last: first, missed: [], more: false };
  const before = new Date(until.getTime() + 1);
  // One for the last, and one to see that there were more.
  const found = parse(cron, timezone, [first, until], first).previousRuns(MAX_MISSED + 2, before);
  const [last = first, ...missed] = found;
  return { last, missed: missed.slice(0, MAX_MISSED), more: missed.length > MAX_MISSED };
}

function nextOf(cron: string, timezone: string | null, after: Date): Date | null {
  return parse(cron, timezone, [after, new Date(after.getTime() + SEARCH_MS)]).nextRun(after);
}

/** Looks for occurrences between two instants, and up to a year beside them. */
function parse(cron: string, timezone: string | null, [from, to]: [Date, Date], startAt?: Date): Cron {
  const years = `${from.getUTCFullYear() - 1}-${to.getUTCFullYear() + 1}`;
  return new Cron(`0 ${cron.trim()} ${years}`, {
    mode: '7-part',
    fixedTimeRule: 'no-wildcard',
    timezone: timezone ?? 'UTC',
    // Without a function there is no timer; this says so.
    paused: true,
    ...(startAt && { startAt }),
  });
}

/** Abbreviations and offsets are refused: CST is one place's name for several, and an offset knows no summer time. */
function checkTimezone(timezone: string | null): void {
  if (timezone === null || timezone === 'UTC') return;
  try {
    if (!/^[A-Za-z]\w*\//.test(timezone)) throw new RangeError('Not an area');
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch {
    throw invalidField('timezone', 'must be the IANA name of a time zone such as Europe/Berlin, or UTC');
  }
}

/** In croner's words, which count days and months from 0. */
function cronError({ message }: Error): string {
  return message
    .replace(/^Cron\w+: /, '')
    .replace(/^(Invalid value for (?:day|month): )(-?\d+)$/, (_, what, value) => `${what}${Number(value) + 1}`);
}
