// Computes when a schedule's sessions are due, with croner. It reads no clock.
//
// At daylight saving changes, explicit times of day (`no-wildcard`, as in Vixie cron, also lists such as `0 2,14 * * *`) always run
// once: a time that does not exist runs at the end of the gap, a time that occurs twice runs the first time. A pattern with a
// wildcard or step in minute or hour follows the clock: it runs during the repeated hour, and skips what falls into the gap.
import { Cron } from 'croner';
import { invalidField } from '../lib/api-error.ts';

/** Either `cron` with `timezone`, or `at`. */
export interface Timing {
  cron: string | null;
  timezone: string | null;
  at: Date | null;
}

/** The due occurrences of a schedule. */
export interface DueOccurrences {
  /** The latest occurrence, which runs. */
  last: Date;
  /** The occurrences before it, latest first; at most MAX_MISSED. */
  missed: Date[];
  /** Whether there were more than MAX_MISSED. */
  more: boolean;
}

// A schedule that runs every minute has 43,200 occurrences a month. People do not read that many, and each would be a row.
export const MAX_MISSED = 100;

// The rarest date, 29 February on a certain day of the week, occurs at least every 40 years. Searching for a date that never occurs
// costs a tenth of a second for each thousand years.
const SEARCH_MS = 48 * 365.25 * 24 * 3_600_000;

/** Throws a 400 that names the field and says what is valid. Does not check whether `at` is in the past. */
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

/** The first occurrence after an instant; null if there is none. */
export function nextOccurrence({ cron, timezone, at }: Timing, after: Date): Date | null {
  if (cron === null) return at && at > after ? at : null;
  return nextOf(cron, timezone, after);
}

/** The occurrences from `first`, which is an occurrence, to `until`, inclusive. */
export function dueOccurrences({ cron, timezone }: Timing, first: Date, until: Date): DueOccurrences {
  if (cron === null) return { last: first, missed: [], more: false };
  const before = new Date(until.getTime() + 1);
  // Plus the latest one, and one to find out whether there were more.
  const found = parse(cron, timezone, [first, until], first).previousRuns(MAX_MISSED + 2, before);
  const [last = first, ...missed] = found;
  return { last, missed: missed.slice(0, MAX_MISSED), more: missed.length > MAX_MISSED };
}

function nextOf(cron: string, timezone: string | null, after: Date): Date | null {
  return parse(cron, timezone, [after, new Date(after.getTime() + SEARCH_MS)]).nextRun(after);
}

/** A parsed pattern that occurs between two instants, and up to a year before and after them. */
function parse(cron: string, timezone: string | null, [from, to]: [Date, Date], startAt?: Date): Cron {
  const years = `${from.getUTCFullYear() - 1}-${to.getUTCFullYear() + 1}`;
  return new Cron(`0 ${cron.trim()} ${years}`, {
    mode: '7-part',
    fixedTimeRule: 'no-wildcard',
    timezone: timezone ?? 'UTC',
    // Without a callback croner starts no timer anyway; this makes it explicit.
    paused: true,
    ...(startAt && { startAt }),
  });
}

/** Refuses abbreviations and offsets: CST is ambiguous, and an offset has no daylight saving time. */
function checkTimezone(timezone: string | null): void {
  if (timezone === null || timezone === 'UTC') return;
  try {
    if (!/^[A-Za-z]\w*\//.test(timezone)) throw new RangeError('Not an area');
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch {
    throw invalidField('timezone', 'must be the IANA name of a time zone such as Europe/Berlin, or UTC');
  }
}

/** The message of croner's error, with days and months counted from 1 instead of 0. */
function cronError({ message }: Error): string {
  return message
    .replace(/^Cron\w+: /, '')
    .replace(/^(Invalid value for (?:day|month): )(-?\d+)$/, (_, what, value) => `${what}${Number(value) + 1}`)
    .replace(
      /^From value is larger than to value: (.*)$/,
      'the range $1 ends before it begins: write a list, such as "22-23,0-2" or "FRI,SAT,SUN,MON"',
    );
}
