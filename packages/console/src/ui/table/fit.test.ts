import { expect, test } from 'vitest';
import type { Column } from './columns.ts';
import { columnsThatFit } from './fit.ts';

const cell = () => null;
const columns: Column<never>[] = [
  { id: 'name', label: 'Name', cell },
  { id: 'status', label: 'Status', width: '20%', cell },
  { id: 'user', label: 'User', width: '10rem', from: 'desktop', cell },
  { id: 'id', label: 'ID', width: '10rem', from: 'wide', cell },
  { id: 'cost', label: 'Cost', width: '5rem', from: 'desktop', cell },
  { id: 'age', label: 'Age', width: '5rem', cell },
];

test.each([
  [80, 'name status user id cost age'],
  // 14 + 12 + 10 + 5 + 5 = 46 without the ID.
  [60, 'name status user id cost age'],
  [58, 'name status user id cost age'],
  [50, 'name status user cost age'],
  [40, 'name status user age'],
  [30, 'name status age'],
  // What every screen shows stays.
  [10, 'name status age'],
])('a table of %i rem drops columns until the first one has room: %s', (widthRem, ids) => {
  expect(
    columnsThatFit(columns, widthRem)
      .map(({ id }) => id)
      .join(' '),
  ).toBe(ids);
});

test('the checkbox and the actions of a row need room as well', () => {
  expect(columnsThatFit(columns, 58, 5).map(({ id }) => id)).not.toContain('id');
});
