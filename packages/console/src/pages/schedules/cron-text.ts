// Common cron expressions in words. Others are shown as they were written.

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const abbreviations = days.map((day) => day.slice(0, 3).toUpperCase());

/** `0 9 * * 1-5` → `Monday to Friday at 09:00`; undefined if there are no short words for it. */
export function cronText(cron: string): string | undefined {
  const [minute, hour, dayOfMonth, month, dayOfWeek, ...more] = cron.trim().toUpperCase().split(/\s+/);
  if (minute === undefined || hour === undefined || more.length > 0 || month !== '*') return undefined;
  const time = timeWords(minute, hour);
  if (time === undefined) return undefined;
  if (dayOfMonth === '*' && dayOfWeek === '*') return time.isDaily ? `every day ${time.words}` : time.words;
  const day = dayOfMonth === '*' ? weekdayWords(dayOfWeek) : dayOfWeek === '*' ? monthDayWords(dayOfMonth) : undefined;
  return day && `${day}${time.isDaily ? '' : ','} ${time.words}`;
}

function timeWords(minute: string, hour: string): { words: string; isDaily: boolean } | undefined {
  const step = /^\*\/(\d{1,2})$/;
  const [, minutes] = step.exec(minute) ?? [];
  if (minute === '*' && hour === '*') return { words: 'every minute', isDaily: false };
  // A step that does not divide the hour is shorter at its end.
  if (minutes !== undefined) {
    if (60 % Number(minutes) !== 0) return undefined;
    const words = eachOf(Number(minutes), 'minute');
    if (hour === '*') return { words, isDaily: false };
    const [from, to] = hourRange(hour);
    if (from === undefined || to === undefined || from > to) return undefined;
    return { words: `${words} from ${clock(from, 0)} to ${clock(to, 60 - Number(minutes))}`, isDaily: false };
  }
  const at = inRange(minute, 0, 59);
  if (at === undefined) return undefined;
  const past = at === 0 ? 'on the hour' : `at ${at} past`;
  if (hour === '*') return { words: `every hour, ${past}`, isDaily: false };
  const hours = step.exec(hour)?.[1];
  if (hours !== undefined)
    return 24 % Number(hours) === 0
      ? { words: `${eachOf(Number(hours), 'hour')}, ${past}`, isDaily: false }
      : undefined;
  const times = hour.split(',').map((one) => inRange(one, 0, 23));
  if (times.some((one) => one === undefined)) return undefined;
  const words = times.map((one) => clock(one!, at));
  return { words: `at ${listed(words)}`, isDaily: true };
}

function hourRange(field: string): (number | undefined)[] {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(field) ?? [];
  return from === undefined || to === undefined ? [] : [inRange(from, 0, 23), inRange(to, 0, 23)];
}

function clock(hour: number, minute: number): string {
  return `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;
}

function eachOf(count: number, unit: string): string {
  return count === 1 ? `every ${unit}` : `every ${count} ${unit}s`;
}

function weekdayWords(field: string | undefined): string | undefined {
  const [, from, to] = /^([^-,]+)-([^-,]+)$/.exec(field ?? '') ?? [];
  if (from !== undefined && to !== undefined) {
    const [first, last] = [weekday(from), weekday(to)];
    return first && last && `${first} to ${last}`;
  }
  const named = (field ?? '').split(',').map(weekday);
  return named.some((one) => one === undefined) ? undefined : `every ${listed(named as string[])}`;
}

function weekday(text: string): string | undefined {
  const named = abbreviations.indexOf(text);
  const number = named === -1 ? inRange(text, 0, 7) : named;
  return number === undefined ? undefined : days[number % 7];
}

function monthDayWords(field: string | undefined): string | undefined {
  if (field === 'L') return 'the last day of every month';
  const day = inRange(field ?? '', 1, 31);
  return day === undefined ? undefined : `day ${day} of every month`;
}

function inRange(text: string, least: number, most: number): number | undefined {
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
