import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkTiming, dueOccurrences, MAX_MISSED, nextOccurrence, type Timing } from './occurrences.ts';

const now = new Date('2026-01-02T03:04:05.678Z');
const cron = (pattern: string, timezone: string | null = 'UTC'): Timing => ({ cron: pattern, timezone, at: null });
const after = (timing: Timing, from: string, count: number): string[] => {
  const found: string[] = [];
  for (let at = nextOccurrence(timing, new Date(from)); at && found.length < count; at = nextOccurrence(timing, at)) {
    found.push(at.toISOString());
  }
  return found;
};
const refusal = (timing: Timing): string => {
  try {
    checkTiming(timing, now);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('a timing', () => {
  test.each([
    '* * * * *',
    '*/5 9-17 * * MON-FRI',
    '0 0 29 2 *',
    '0 0 L * *',
    '0 9 * * 1#2',
    '0 9 1 * +MON',
    ' 0  9 * * 7 ',
  ])('may be the cron expression "%s"', (pattern) => expect(refusal(cron(pattern))).toBe(''));

  test.each([
    ['* * * * * *', 'it has 6 (there are no seconds or years)'],
    ['0 0 9 * * 1 2030', 'it has 7 (there are no seconds or years)'],
    ['* * * *', 'it has 4'],
    ['   ', 'it has 1'],
    ['2030-01-01T00:00:00Z', 'it has 1'],
  ])('is refused with an example if its cron expression is "%s"', (pattern, why) => {
    expect(refusal(cron(pattern))).toMatch(/^cron: must be five fields, .* such as "0 9 \* \* 1-5"; it /);
    expect(refusal(cron(pattern))).toContain(why);
  });

  test.each([
    ['60 * * * *', ': Invalid value for minute: 60'],
    ['0 9 32 * *', ': Invalid value for day: 32'],
    ['0 9 0 * *', ': Invalid value for day: 0'],
    ['0 9 * 13 *', ': Invalid value for month: 13'],
    ['* * * * MUN', ': '],
    ['5-1 * * * *', ": the range '5-1' ends before it begins: write a list, such as"],
    ['0 22-2 * * *', ": the range '22-2' ends"],
    ['0 9 * * FRI-MON', ": the range '5-1' ends"],
    ['0 9 * NOV-FEB *', ": the range '11-2' ends"],
    ['0/5 * * * *', ": Syntax error, stepping with numeric prefix ('0/5') is not allowed. Use wildcard (*/step)"],
    ['*/0 * * * *', ': '],
  ])('is refused with the error in the cron expression "%s"', (pattern, why) => {
    expect(refusal(cron(pattern))).toContain(`cron: is not a cron expression such as "0 9 * * 1-5"${why}`);
  });

  test('is refused with the equivalent of "@daily"', () =>
    expect(refusal(cron('@daily'))).toBe('cron: does not support names: @daily is "0 0 * * *"'));

  test.each(['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 29W 2 +SUN'])(
    'is refused as "%s", which never occurs',
    (pattern) => expect(refusal(cron(pattern))).toBe('cron: never occurs: no day matches it'),
  );

  test.each(['Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5', 'UTC', null])(
    'can be in the time zone %s',
    (timezone) => expect(refusal(cron('0 9 * * *', timezone))).toBe(''),
  );

  test.each(['Mars/Olympus', 'CST', '+02:00', 'local', '', 'Europe/Berlin ', 'Europe'])(
    'is refused in "%s", which is not exactly one time zone',
    (timezone) =>
      expect(refusal(cron('0 9 * * *', timezone))).toBe(
        'timezone: must be the IANA name of a time zone such as Europe/Berlin, or UTC',
      ),
  );

  test('is either cron or at, and a time zone goes with cron', () => {
    expect(refusal({ cron: null, timezone: null, at: null })).toMatch(/^cron: is required, or at/);
    expect(refusal({ cron: '0 9 * * *', timezone: null, at: now })).toMatch(
      /^at: must not be given together with cron/,
    );
    expect(refusal({ cron: null, timezone: 'UTC', at: now })).toMatch(/^timezone: is only allowed with cron/);
  });
});

describe('the next occurrence', () => {
  test('is after the given time, never at it', () => {
    expect(after(cron('0 9 * * *'), '2026-01-02T08:59:59.999Z', 1)).toEqual(['2026-01-02T09:00:00.000Z']);
    expect(after(cron('0 9 * * *'), '2026-01-02T09:00:00.000Z', 1)).toEqual(['2026-01-03T09:00:00.000Z']);
  });

  test('of a one-time schedule is its time, once', () => {
    const at = new Date('2026-02-03T04:05:06.789Z');
    expect(nextOccurrence({ cron: null, timezone: null, at }, now)).toEqual(at);
    expect(nextOccurrence({ cron: null, timezone: null, at }, at)).toBeNull();
  });

  test('is computed in the time zone: 9:00 in Berlin is 8:00 UTC in winter and 7:00 in summer', () => {
    expect(after(cron('0 9 * * *', 'Europe/Berlin'), '2026-03-27T12:00:00Z', 3)).toEqual([
      '2026-03-28T08:00:00.000Z',
      '2026-03-29T07:00:00.000Z',
      '2026-03-30T07:00:00.000Z',
    ]);
  });
});

// Berlin's clocks go from 2:00 to 3:00 on 29 March 2026 at 1:00 UTC, and from 3:00 to 2:00 on 25 October at 1:00 UTC.
describe('at daylight saving changes', () => {
  const spring = '2026-03-28T12:00:00Z';
  const autumn = '2026-10-24T12:00:00Z';

  test('a time of day that does not exist runs when the gap ends', () => {
    expect(after(cron('30 2 * * *', 'Europe/Berlin'), spring, 2)).toEqual([
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:30:00.000Z',
    ]);
  });

  test('a time of day that occurs twice runs the first time', () => {
    expect(after(cron('30 2 * * *', 'Europe/Berlin'), autumn, 2)).toEqual([
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
    ]);
  });

  test('the same is true of times in a list or range', () => {
    expect(after(cron('30 2,14 * * *', 'Europe/Berlin'), spring, 2)).toEqual([
      '2026-03-28T13:30:00.000Z',
      '2026-03-29T01:00:00.000Z',
    ]);
    expect(after(cron('30 2,14 * * *', 'Europe/Berlin'), autumn, 3)).toEqual([
      '2026-10-24T12:30:00.000Z',
      '2026-10-25T00:30:00.000Z',
      '2026-10-25T13:30:00.000Z',
    ]);
  });

  // Compared with a calendar of minutes that is independent of cron, in zones whose clocks change by half an hour, at midnight, or
  // around Ramadan.
  test.each([
    ['Europe/Berlin', '2026-03-28'],
    ['Europe/Berlin', '2026-10-24'],
    ['America/New_York', '2026-03-07'],
    ['Australia/Lord_Howe', '2026-10-03'],
    ['Australia/Lord_Howe', '2026-04-04'],
    ['America/Santiago', '2026-09-05'],
    ['America/Santiago', '2026-04-04'],
    ['Africa/Cairo', '2026-04-23'],
    ['Africa/Casablanca', '2026-03-21'],
    ['America/St_Johns', '2010-11-06'],
  ])('in %s after %s every pattern occurs when a calendar says so', (timezone, day) => {
    const minutes = localMinutes(timezone, new Date(`${day}T00:00:00Z`), 3 * 1440);
    const from = minutes[0]!.instant.toISOString();
    const until = minutes.at(-1)!.instant.toISOString();
    for (const minute of [0, 15, 30]) {
      for (const hour of [0, 1, 2, 3, 9, 23]) {
        // The first minute with this time of day, or after it if the gap skips it.
        const times = after(cron(`${minute} ${hour} * * *`, timezone), from, 10).filter((time) => time <= until);
        const time = hour * 60 + minute;
        const written = minutes.filter(
          ({ shown, wall }) => Math.floor((wall - time) / 1440) > Math.floor((shown - time) / 1440),
        );
        expect(times, `${minute} ${hour} * * *`).toEqual(written.map(({ instant }) => instant.toISOString()));
      }
      const hourly = minutes.slice(1).filter(({ wall }) => wall % 60 === minute);
      const times = after(cron(`${minute} * * * *`, timezone), from, 80).filter((time) => time <= until);
      expect(times).toEqual(hourly.map(({ instant }) => instant.toISOString()));
    }
  });

  test('a pattern with a wildcard follows the clock through both: every half hour stays every half hour', () => {
    for (const from of ['2026-03-29T00:00:00Z', '2026-10-25T00:00:00Z']) {
      const times = after(cron('*/30 * * * *', 'Europe/Berlin'), from, 6).map((time) => Date.parse(time));
      expect(times.map((time) => (time - Date.parse(from)) / 60_000)).toEqual([30, 60, 90, 120, 150, 180]);
    }
  });
});

/** `wall`: the local date and time of day, in minutes since 1970; `shown`: the latest that clocks have shown before. */
function localMinutes(timezone: string, from: Date, count: number) {
  const format = new Intl.DateTimeFormat('sv', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' });
  let latest = Number.POSITIVE_INFINITY;
  return Array.from({ length: count }, (_, n) => {
    const instant = new Date(from.getTime() + n * 60_000);
    const wall = Date.parse(`${format.format(instant).replace(' ', 'T')}Z`) / 60_000;
    const shown = latest;
    latest = n === 0 ? wall : Math.max(latest, wall);
    return { instant, wall, shown };
  });
}

describe('occurrences that are rare or do not exist', () => {
  test('29 February occurs every four years, but not in 2100', () => {
    expect(after(cron('0 0 29 2 *'), '2093-01-01T00:00:00Z', 3)).toEqual([
      '2096-02-29T00:00:00.000Z',
      '2104-02-29T00:00:00.000Z',
      '2108-02-29T00:00:00.000Z',
    ]);
  });

  test('29 February on a Monday occurs after 40 years at most', () => {
    expect(after(cron('0 0 29 2 +MON'), '2072-03-01T00:00:00Z', 1)).toEqual(['2112-02-29T00:00:00.000Z']);
  });

  test('the last day of a month is the 29th in a leap year', () => {
    expect(after(cron('0 0 L 2 *'), '2027-01-01T00:00:00Z', 2)).toEqual([
      '2027-02-28T00:00:00.000Z',
      '2028-02-29T00:00:00.000Z',
    ]);
  });
});

describe('the due occurrences', () => {
  test('are the latest one, and those before it as missed, latest first', () => {
    const due = dueOccurrences(cron('0 * * * *'), new Date('2026-01-02T04:00:00Z'), new Date('2026-01-02T07:00:00Z'));
    expect(due).toEqual({
      last: new Date('2026-01-02T07:00:00Z'),
      missed: ['06', '05', '04'].map((hour) => new Date(`2026-01-02T${hour}:00:00Z`)),
      more: false,
    });
  });

  test('are only the first one if the next is in the future', () => {
    const first = new Date('2026-01-02T04:00:00Z');
    for (const until of [first, new Date('2026-01-02T04:59:59.999Z')]) {
      expect(dueOccurrences(cron('0 * * * *'), first, until)).toEqual({ last: first, missed: [], more: false });
    }
    const timing = { cron: null, timezone: null, at: first };
    expect(dueOccurrences(timing, first, new Date('2030-01-01T00:00:00Z')).last).toEqual(first);
  });

  test(`have at most ${MAX_MISSED} missed ones, the latest, and report that there were more`, () => {
    const first = new Date('2026-01-01T00:00:00Z');
    const due = (minutes: number) =>
      dueOccurrences(cron('* * * * *'), first, new Date(first.getTime() + minutes * 60_000 + 30_000));
    expect(due(MAX_MISSED)).toMatchObject({ more: false });
    expect(due(MAX_MISSED).missed.at(-1)).toEqual(first);
    const month = due(43_200);
    expect(month.missed).toHaveLength(MAX_MISSED);
    expect(month).toMatchObject({ last: new Date('2026-01-31T00:00:00Z'), more: true });
    expect(month.missed[0]).toEqual(new Date('2026-01-30T23:59:00Z'));
  });

  test('are those that the schedule would have run one by one, in every time zone', () => {
    const field = (low: number, high: number) =>
      fc.oneof(
        fc.constant('*'),
        fc.integer({ min: low, max: high }).map(String),
        fc.integer({ min: 2, max: Math.min(high, 20) }).map((step) => `*/${step}`),
        fc
          .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }))
          .map((pair) => pair.join(',')),
      );
    const pattern = fc
      .tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7))
      .map((fields) => fields.join(' '));
    const timezone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia');
    const from = fc.date({ min: new Date('2026-01-01'), max: new Date('2026-12-31'), noInvalidDate: true });
    fc.assert(
      fc.property(pattern, timezone, from, fc.integer({ min: 0, max: 50 }), (pattern, timezone, from, skipped) => {
        const timing = cron(pattern, timezone);
        const one = after(timing, from.toISOString(), skipped + 1);
        const { last, missed, more } = dueOccurrences(timing, new Date(one[0]!), new Date(one.at(-1)!));
        expect([last, ...missed].map((time) => time.toISOString())).toEqual(one.toReversed());
        expect(more).toBe(false);
      }),
    );
  });
});
