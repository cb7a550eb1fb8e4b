import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { Db } from '../db/db.ts';
import { createBudgetStops } from './stops.ts';

test('a budget that is set while budgets are read is known to the next request', async () => {
  const answers: ((rows: object[]) => void)[] = [];
  const db = { query: () => new Promise((resolve) => answers.push(resolve)) } as unknown as Db;
  const stops = createBudgetStops({ db, clock: createManualClock(new Date('2026-03-10T12:00:00.000Z')) });
  const before = stops.of('organization');
  stops.forget('organization');
  answers[0]!([]);
  expect(await before).toEqual([]);
  const after = stops.of('organization');
  answers[1]!([{ name: 'stops', period: 'day', limitUsd: 1, spentUsd: 1 }]);
  expect(await after).toMatchObject([{ name: 'stops', isUsedUp: true }]);
});
