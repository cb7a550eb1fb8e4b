import { expect, test } from 'vitest';
import { cronText } from './cron-text.ts';

test('common expressions are described exactly', () => {
  const words = {
    '* * * * *': 'every minute',
    '*/15 * * * *': 'every 15 minutes',
    '*/1 * * * *': 'every minute',
    '5 * * * *': 'every hour, at 5 past',
    '0 */6 * * *': 'every 6 hours, on the hour',
    '0 9 * * *': 'every day at 09:00',
    '30 9,17 * * *': 'every day at 09:30 and 17:30',
    ' 0  9 * * 1-5 ': 'Monday to Friday at 09:00',
    '0 9 * * mon,wed,fri': 'every Monday, Wednesday and Friday at 09:00',
    '*/30 9-17 * * 1-5': 'Monday to Friday, every 30 minutes from 09:00 to 17:30',
    '*/1 8-9 * * *': 'every minute from 08:00 to 09:59',
    '*/15 * * * sat': 'every Saturday, every 15 minutes',
    '0 9 * * 7': 'every Sunday at 09:00',
    '0 9 1 * *': 'day 1 of every month at 09:00',
    '15 23 L * *': 'the last day of every month at 23:15',
  };
  for (const [cron, expected] of Object.entries(words)) expect(cronText(cron), cron).toBe(expected);
});

test('expressions that words would describe wrongly have no description', () => {
  // Uneven steps, two kinds of day, months, nearest days, invalid and incomplete expressions.
  for (const cron of [
    '*/7 * * * *',
    '0 */5 * * *',
    '0 9 1 * 1',
    '0 9 1 * +MON',
    '0 9 * 1 *',
    '0 9 15W * *',
    '0 9 * * MON#2',
    '61 9 * * *',
    '0 24 * * *',
    '*/15 9 * * *',
    '*/15 17-9 * * *',
    '*/7 9-17 * * *',
    '*/0 9-17 * * *',
    '*/15 9-24 * * *',
    '0 9 * *',
    '0 0 9 * * *',
    '',
    'hourly',
  ])
    expect(cronText(cron), cron).toBeUndefined();
});
